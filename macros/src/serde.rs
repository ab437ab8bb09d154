//! What serde was told about names: the derives follow it, and refuse what the log can't follow.

use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Field, Lit, Meta, Token};

/// Every option inside the `#[serde(…)]` attributes. What serde itself would refuse is left to it.
pub(crate) fn options(attributes: &[Attribute]) -> Vec<Meta> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("serde"))
        .filter_map(|attribute| {
            attribute
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .ok()
        })
        .flatten()
        .collect()
}

/// The option of a name, if it was given.
pub(crate) fn find(attributes: &[Attribute], name: &str) -> Option<Meta> {
    options(attributes)
        .into_iter()
        .find(|option| option.path().is_ident(name))
}

/// The name of a field in the body, as serde reads it.
pub(crate) fn field_name(container: &[Attribute], field: &Field) -> String {
    if let Some(name) = find(&field.attrs, "rename").and_then(|option| read_name(&option)) {
        return name;
    }
    let ident = field
        .ident
        .as_ref()
        .map(|ident| ident.unraw().to_string())
        .unwrap_or_default();
    let rule = find(container, "rename_all").and_then(|option| read_name(&option));
    match rule {
        Some(rule) => renamed(&ident, &rule),
        None => ident,
    }
}

/// The text of `rename = "x"`, or of the reading side of `rename(deserialize = "x")`.
fn read_name(option: &Meta) -> Option<String> {
    match option {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        Meta::List(list) => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .ok()?
            .iter()
            .find(|side| side.path().is_ident("deserialize"))
            .and_then(read_name),
        Meta::Path(_) => None,
    }
}

/// A field's name under one of serde's `rename_all` rules.
fn renamed(field: &str, rule: &str) -> String {
    match rule {
        "UPPERCASE" | "SCREAMING_SNAKE_CASE" => field.to_ascii_uppercase(),
        "PascalCase" => pascal(field),
        "camelCase" => {
            let pascal = pascal(field);
            let mut rest = pascal.chars();
            let first = rest.next().map(|first| first.to_ascii_lowercase());
            first.into_iter().chain(rest).collect()
        }
        "kebab-case" => field.replace('_', "-"),
        "SCREAMING-KEBAB-CASE" => field.to_ascii_uppercase().replace('_', "-"),
        // "lowercase", "snake_case", and what serde itself refuses.
        _ => field.to_owned(),
    }
}

fn pascal(field: &str) -> String {
    let word = |word: &str| {
        let mut rest = word.chars();
        let first = rest.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(rest).collect::<String>()
    };
    field.split('_').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::{ItemStruct, parse_quote};

    fn names(item: &ItemStruct) -> Vec<String> {
        item.fields
            .iter()
            .map(|field| field_name(&item.attrs, field))
            .collect()
    }

    #[test]
    fn a_field_is_named_as_serde_reads_it() {
        let item = parse_quote! {
            #[serde(deny_unknown_fields, rename_all = "camelCase")]
            struct Sample {
                source_id: String,
                r#type: String,
                #[serde(default, rename = "To")]
                target: String,
                #[serde(rename(serialize = "out", deserialize = "in"))]
                both: String,
            }
        };
        assert_eq!(names(&item), ["sourceId", "type", "To", "in"]);
    }

    #[test]
    fn every_rule_of_serde_is_followed() {
        for (rule, name) in [
            ("lowercase", "source_id"),
            ("UPPERCASE", "SOURCE_ID"),
            ("PascalCase", "SourceId"),
            ("camelCase", "sourceId"),
            ("snake_case", "source_id"),
            ("SCREAMING_SNAKE_CASE", "SOURCE_ID"),
            ("kebab-case", "source-id"),
            ("SCREAMING-KEBAB-CASE", "SOURCE-ID"),
        ] {
            assert_eq!(renamed("source_id", rule), name, "{rule}");
        }
    }
}
