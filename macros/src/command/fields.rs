//! The marked fields of a command: the aggregate id, and what path and headers fill.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Field, Fields, Ident, LitStr, Path};

use crate::field_type::{is_string, optional};
use crate::options::{self, Faults, Once};
use crate::serde;

/// The field that holds the aggregate id.
pub(super) struct Id {
    /// Its name in the body.
    pub(super) name: String,
    field: Ident,
    is_optional: bool,
}

impl Id {
    /// `fn aggregate_id`.
    pub(super) fn method(&self) -> TokenStream {
        let field = &self.field;
        let id = match self.is_optional {
            true => quote!(self.#field.clone()),
            false => quote!(::core::option::Option::Some(self.#field.clone())),
        };
        quote! {
            fn aggregate_id(&self) -> ::core::option::Option<::std::string::String> {
                #id
            }
        }
    }
}

/// A field that path or header fills.
pub(super) struct Variable {
    /// Where it comes from: a variant of `VariableSource`.
    pub(super) source: &'static str,
    /// The name of the path segment or header.
    pub(super) name: LitStr,
    field: String,
}

impl Variable {
    /// The declaration.
    pub(super) fn tokens(&self, kernel: &Path) -> TokenStream {
        let (field, name, source) = (&self.field, &self.name, format_ident!("{}", self.source));
        quote! {
            #kernel::model::Variable {
                field: #field,
                name: #name,
                source: #kernel::model::VariableSource::#source,
            }
        }
    }
}

/// What the marks say.
#[derive(Default)]
pub(super) struct Marks {
    pub(super) id: Option<Id>,
    pub(super) variables: Vec<Variable>,
}

#[derive(Default)]
struct Mark {
    id: Once<()>,
    path: Once<LitStr>,
    header: Once<LitStr>,
}

/// Reads the marks of all fields.
pub(super) fn read(container: &[Attribute], fields: &Fields, faults: &mut Faults) -> Marks {
    let mut marks = Marks::default();
    for field in fields {
        let mark = read_mark(field, faults);
        let Some(span) = mark.id.span().or(mark.path.span()).or(mark.header.span()) else {
            continue;
        };
        refuse_hidden(field, span, faults);
        let name = serde::field_name(container, field);
        if mark.path.is_set() && mark.header.is_set() {
            faults.at(
                span,
                "a field is filled from one place: keep `path` or `header`",
            );
        }
        if mark.id.is_set() {
            let id = id(field, name.clone(), faults);
            match marks.id {
                Some(_) => faults.at(span, "an aggregate has one id: mark one field"),
                None => marks.id = id,
            }
        }
        let filled = [("Path", mark.path), ("Header", mark.header)];
        for (source, variable) in filled {
            if let Some(variable) = variable.get() {
                let (name, field) = (variable.clone(), name.clone());
                marks.variables.push(Variable {
                    source,
                    name,
                    field,
                });
            }
        }
    }
    refuse_twice(&marks.variables, faults);
    marks
}

fn read_mark(field: &Field, faults: &mut Faults) -> Mark {
    let mut mark = Mark::default();
    options::read(&field.attrs, "command", faults, |meta| {
        if meta.path.is_ident("id") {
            mark.id.set(meta, ())
        } else if meta.path.is_ident("path") {
            mark.path.set(meta, path_name(options::text(meta)?)?)
        } else if meta.path.is_ident("header") {
            mark.header.set(meta, header_name(options::text(meta)?)?)
        } else {
            Err(options::unknown(meta, &["id", "path", "header"]))
        }
    });
    mark
}

/// Why a name can't be a variable's: every route has it itself.
pub(super) fn reserved(name: &str) -> Option<String> {
    ["id", "tenantId", "ownerId"].contains(&name).then(|| {
        format!(
            "`{{{name}}}` is part of every route: choose another name, or mark the field that \
             holds the aggregate id with `#[command(id)]`"
        )
    })
}

fn path_name(name: LitStr) -> syn::Result<LitStr> {
    let text = name.value();
    if let Some(advice) = reserved(&text) {
        return Err(syn::Error::new(name.span(), advice));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || !text.chars().all(fits) {
        return Err(syn::Error::new(
            name.span(),
            "a path variable is named by letters, digits, `_` and `-`: write `path = \"part\"`",
        ));
    }
    Ok(name)
}

fn header_name(name: LitStr) -> syn::Result<LitStr> {
    let text = name.value();
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if text.is_empty() || !text.chars().all(fits) {
        return Err(syn::Error::new(
            name.span(),
            "this is no name of a header: write `header = \"Channel\"`",
        ));
    }
    Ok(name)
}

/// A field that the body doesn't have under a name of its own can't be found in it.
fn refuse_hidden(field: &Field, span: Span, faults: &mut Faults) {
    for option in ["skip", "skip_deserializing", "flatten"] {
        if serde::find(&field.attrs, option).is_some() {
            let advice = format!("the body has no field of this name: remove `serde({option})`");
            faults.at(span, advice);
        }
    }
}

fn refuse_twice(variables: &[Variable], faults: &mut Faults) {
    for (index, variable) in variables.iter().enumerate() {
        let same = |earlier: &Variable| {
            earlier.source == variable.source
                && earlier
                    .name
                    .value()
                    .eq_ignore_ascii_case(&variable.name.value())
        };
        if variables[..index].iter().any(same) {
            let advice = "another field is filled from this: give each its own name";
            faults.at(variable.name.span(), advice);
        }
    }
}

fn id(field: &Field, name: String, faults: &mut Faults) -> Option<Id> {
    let is_optional = match optional(&field.ty) {
        Some(inner) if is_string(inner) => true,
        None if is_string(&field.ty) => false,
        _ => {
            faults.push(syn::Error::new_spanned(
                &field.ty,
                "an id is a text: write `String`, or `Option<String>` where admission may make it",
            ));
            return None;
        }
    };
    Some(Id {
        name,
        field: field.ident.clone()?,
        is_optional,
    })
}
