//! `#[derive(Command)]`: a struct to its declaration, its route and its variables.

mod fields;
mod route;

use heck::ToSnakeCase;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, LitStr, Path};

use crate::access::{self, Access};
use crate::options::{self, Faults, Once};

/// The options of the struct.
#[derive(Default)]
struct Options {
    creation: Once<&'static str>,
    name: Once<LitStr>,
    method: Once<LitStr>,
    action: Once<LitStr>,
    access: Once<Access>,
    pure: Once<()>,
    blocking: Once<()>,
    recovers: Once<()>,
    lenient: Once<()>,
    validate: Once<()>,
}

/// The impl.
pub(crate) fn expand(input: &DeriveInput, kernel: &Path) -> syn::Result<TokenStream> {
    let fields = fields_of(input)?;
    let mut faults = Faults::default();
    let options = read_options(input, &mut faults);
    let name = name(input, &options);
    let marks = fields::read(&input.attrs, fields, &mut faults);
    let route = route::read(&options, &name, &marks.variables, &mut faults);
    faults.finish()?;

    let creation = format_ident!("{}", options.creation.get().copied().unwrap_or("Updates"));
    let purity = format_ident!(
        "{}",
        if options.pure.is_set() {
            "Pure"
        } else {
            "Impure"
        }
    );
    let access = access::tokens(&options.access, kernel);
    let (blocking, recovers) = (options.blocking.is_set(), options.recovers.is_set());
    let strict = !options.lenient.is_set();
    let id_field = optional(marks.id.as_ref().map(|id| &id.name));
    let variables = marks
        .variables
        .iter()
        .map(|variable| variable.tokens(kernel));
    let (method, action) = (format_ident!("{}", route.method), &route.action);
    let empty_body = optional(empty_body(fields));
    let validate = options.validate.span().map(|span| validate(span, kernel));
    let aggregate_id = marks.id.as_ref().map(fields::Id::method);
    let command = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #kernel::model::Command for #command {
            fn spec() -> #kernel::model::CommandSpec {
                #kernel::model::CommandSpec {
                    creation: #kernel::model::CreationRule::#creation,
                    access: #access,
                    purity: #kernel::model::Purity::#purity,
                    blocking: #blocking,
                    recovers: #recovers,
                    strict: #strict,
                    id_field: #id_field,
                    variables: &[#(#variables),*],
                    route: #kernel::model::Route {
                        method: #kernel::model::Method::#method,
                        action: #action,
                    },
                    empty_body: #empty_body,
                    ..#kernel::model::CommandSpec::new(#name)
                }
            }
            #validate
            #aggregate_id
        }
    })
}

/// An empty impl, beside the errors.
pub(crate) fn stub(input: &DeriveInput, kernel: &Path) -> TokenStream {
    let name = &input.ident;
    quote! {
        impl #kernel::model::Command for #name {
            fn spec() -> #kernel::model::CommandSpec { unreachable!() }
        }
    }
}

fn fields_of(input: &DeriveInput) -> syn::Result<&Fields> {
    match &input.data {
        Data::Struct(data) if !matches!(data.fields, Fields::Unnamed(_)) => Ok(&data.fields),
        _ => Err(syn::Error::new_spanned(
            &input.ident,
            "a command's body is a JSON object: write a struct with named fields, `struct … {}` \
             where it has none",
        )),
    }
}

fn name(input: &DeriveInput, options: &Options) -> LitStr {
    options.name.get().cloned().unwrap_or_else(|| {
        let name = input.ident.unraw().to_string().to_snake_case();
        LitStr::new(&name, input.ident.span())
    })
}

fn read_options(input: &DeriveInput, faults: &mut Faults) -> Options {
    let mut found = Options::default();
    options::read(&input.attrs, "command", faults, |meta| {
        if access::read(meta, &mut found.access)? {
            return Ok(());
        }
        match options::shown(&meta.path).as_str() {
            rule @ ("creates" | "updates" | "upserts") => {
                if found.creation.is_set() {
                    return Err(meta.error(
                        "there is one creation rule: keep `creates` (it must not exist), \
                         `updates` (it must) or `upserts` (either)",
                    ));
                }
                found.creation.set(meta, creation_rule(rule))
            }
            "name" => found.name.set(meta, options::name(meta)?),
            "method" => found.method.set(meta, options::text(meta)?),
            "action" => found.action.set(meta, options::text(meta)?),
            "pure" => found.pure.set(meta, ()),
            "blocking" => found.blocking.set(meta, ()),
            "recovers" => found.recovers.set(meta, ()),
            "lenient" => found.lenient.set(meta, ()),
            "validate" => found.validate.set(meta, ()),
            "id" | "path" | "header" => {
                Err(meta.error("this belongs on a field: write it above the field it fills"))
            }
            _ => Err(unknown(meta)),
        }
    });
    if let (Some(span), Some(&"Creates")) = (found.recovers.span(), found.creation.get()) {
        let advice = "what is deleted exists, so nothing creates it: write `upserts` or `updates`";
        faults.at(span, advice);
    }
    found
}

fn creation_rule(option: &str) -> &'static str {
    match option {
        "creates" => "Creates",
        "upserts" => "Upserts",
        _ => "Updates",
    }
}

fn unknown(meta: &syn::meta::ParseNestedMeta<'_>) -> syn::Error {
    let mut known = vec!["creates", "updates", "upserts", "name", "method", "action"];
    known.extend(access::RULES);
    known.extend(["pure", "blocking", "recovers", "lenient", "validate"]);
    options::unknown(meta, &known)
}

/// What stands for a missing body: serde reads a struct without fields from `{}`, and a unit
/// struct from `null`.
fn empty_body(fields: &Fields) -> Option<&'static str> {
    match fields {
        Fields::Unit => Some("null"),
        fields if fields.is_empty() => Some("{}"),
        _ => None,
    }
}

fn validate(span: Span, kernel: &Path) -> TokenStream {
    // At the place of the option, so that a missing `derive(garde::Validate)` is reported there.
    let errors = quote_spanned!(span=> #kernel::model::validate_with_garde(self));
    quote! {
        fn validate(&self) -> ::std::vec::Vec<#kernel::model::BindingError> {
            #errors
        }
    }
}

fn optional<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
