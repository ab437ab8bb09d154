//! `#[derive(Aggregate)]`: a state to its declaration, its commands and its hooks.

use heck::ToSnakeCase;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DataStruct, DeriveInput, Ident, LitStr, Path, Token, parenthesized};

use crate::access::{self, Access};
use crate::field_type::is_string;
use crate::options::{self, Faults, Once};

/// The options of the struct.
#[derive(Default)]
struct Options {
    name: Once<LitStr>,
    resource: Once<LitStr>,
    context: Once<LitStr>,
    tenant: Once<LitStr>,
    owner: Once<&'static str>,
    revision: Once<u32>,
    read: Once<Once<Access>>,
    commands: Once<Vec<Path>>,
    after: Once<Vec<Path>>,
}

const OPTIONS: [&str; 9] = [
    "commands", "name", "resource", "context", "tenant", "owner", "revision", "read", "after",
];

/// The impl.
pub(crate) fn expand(input: &DeriveInput, kernel: &Path) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "an aggregate is its state: write a struct",
        ));
    };
    let mut faults = Faults::default();
    let options = read_options(input, &mut faults);
    let id = id_field(data, &mut faults);
    // Where an option can't be read, those after it in the attribute are not read either.
    if !options.commands.is_set() && faults.is_empty() {
        faults.at(
            input.ident.span(),
            "an aggregate changes by commands: write `#[aggregate(commands(…))]` with those it \
             decides",
        );
    }
    faults.finish()?;

    let aggregate = &input.ident;
    let spec = spec(input, &options, kernel);
    let initial = id.map(|id| initial(&id, kernel));
    let commands = options.commands.get().into_iter().flatten();
    // At the place of the command, so that a missing `impl Decide` is reported there.
    let commands = commands.map(|command| quote_spanned!(command.span()=> set.add::<#command>();));
    let hooks = options.after.get().map(|hooks| after_hooks(hooks, kernel));
    Ok(quote! {
        #[automatically_derived]
        impl #kernel::model::Aggregate for #aggregate {
            fn spec() -> #kernel::model::AggregateSpec {
                #spec
            }

            #initial

            fn commands(set: &mut #kernel::model::CommandSet<Self>) {
                #(#commands)*
            }

            #hooks
        }
    })
}

/// An empty impl, beside the errors.
pub(crate) fn stub(input: &DeriveInput, kernel: &Path) -> TokenStream {
    let name = &input.ident;
    quote! {
        impl #kernel::model::Aggregate for #name {
            fn spec() -> #kernel::model::AggregateSpec { unreachable!() }
            fn commands(_: &mut #kernel::model::CommandSet<Self>) {}
        }
    }
}

fn read_options(input: &DeriveInput, faults: &mut Faults) -> Options {
    let mut found = Options::default();
    options::read(
        &input.attrs,
        "aggregate",
        faults,
        |meta| match options::shown(&meta.path).as_str() {
            "name" => found.name.set(meta, options::name(meta)?),
            "resource" => found.resource.set(meta, options::name(meta)?),
            "context" => found.context.set(meta, options::name(meta)?),
            "tenant" => found.tenant.set(meta, tenant(meta)?),
            "owner" => found.owner.set(meta, owner(meta)?),
            "revision" => found.revision.set(meta, options::revision(meta)?),
            "read" => found.read.set(meta, read_access(meta)?),
            "commands" => found.commands.set(meta, list(meta, "Open, Deposit")?),
            "after" => found.after.set(meta, list(meta, "hook")?),
            "id" => Err(meta.error("this belongs on a field: write it above the field")),
            _ => Err(options::unknown(meta, &OPTIONS)),
        },
    );
    found
}

fn tenant(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let tenant = options::text(meta)?;
    let text = tenant.value();
    if text.trim() != text || text.is_empty() || text.contains(|c: char| c == '/' || c.is_control())
    {
        let advice = "this is no tenant id: write `tenant = \"(0)\"`, or remove it where the \
                      request names the tenant";
        return Err(syn::Error::new(tenant.span(), advice));
    }
    Ok(tenant)
}

fn owner(meta: &ParseNestedMeta<'_>) -> syn::Result<&'static str> {
    let policy = options::text(meta)?;
    match policy.value().as_str() {
        "never" => Ok("Never"),
        "always" => Ok("Always"),
        "aggregate_id" => Ok("AggregateId"),
        _ => Err(syn::Error::new(
            policy.span(),
            "write `never` (no owners), `always` (each has one), or `aggregate_id` (the owner's \
             id is the aggregate's)",
        )),
    }
}

fn read_access(meta: &ParseNestedMeta<'_>) -> syn::Result<Once<Access>> {
    let mut rule = Once::default();
    if meta.input.peek(syn::token::Paren) {
        meta.parse_nested_meta(|meta| {
            if access::read(&meta, &mut rule)? {
                Ok(())
            } else {
                Err(options::unknown(&meta, &access::RULES))
            }
        })?;
    }
    if rule.is_set() {
        return Ok(rule);
    }
    Err(meta.error("`read` takes who may read: write `read(owner)`"))
}

fn list<T: Parse>(meta: &ParseNestedMeta<'_>, example: &str) -> syn::Result<Vec<T>> {
    let name = options::shown(&meta.path);
    let wrong = |span| syn::Error::new(span, format!("write `{name}({example})`"));
    if !meta.input.peek(syn::token::Paren) {
        return Err(wrong(options::span_of(&meta.path)));
    }
    let items;
    parenthesized!(items in meta.input);
    let items = Punctuated::<T, Token![,]>::parse_terminated(&items)
        .map_err(|error| wrong(error.span()))?;
    if items.is_empty() {
        return Err(wrong(options::span_of(&meta.path)));
    }
    Ok(items.into_iter().collect())
}

fn id_field(data: &DataStruct, faults: &mut Faults) -> Option<Ident> {
    let mut found: Option<Ident> = None;
    for field in &data.fields {
        let mut mark = Once::default();
        options::read(&field.attrs, "aggregate", faults, |meta| {
            if meta.path.is_ident("id") {
                mark.set(meta, ())
            } else {
                Err(options::unknown(meta, &["id"]))
            }
        });
        let Some(span) = mark.span() else { continue };
        if !is_string(&field.ty) {
            let advice = "an id is a text: write `String`";
            faults.push(syn::Error::new_spanned(&field.ty, advice));
        }
        match (&field.ident, &found) {
            (None, _) => faults.at(span, "an id needs a name: write a struct with named fields"),
            (_, Some(_)) => faults.at(span, "an aggregate has one id: mark one field"),
            (Some(ident), None) => found = Some(ident.clone()),
        }
    }
    found
}

fn spec(input: &DeriveInput, options: &Options, kernel: &Path) -> TokenStream {
    let name = options
        .name
        .text()
        .unwrap_or_else(|| input.ident.unraw().to_string().to_snake_case());
    let resource = options.resource.text().unwrap_or_else(|| name.clone());
    let context = optional(options.context.get());
    let tenant = optional(options.tenant.get());
    let owner = format_ident!("{}", options.owner.get().copied().unwrap_or("Never"));
    let revision = options.revision.get().copied().unwrap_or(1);
    let read = access::tokens(options.read.get().unwrap_or(&Once::default()), kernel);
    quote! {
        #kernel::model::AggregateSpec {
            name: #name,
            resource: #resource,
            context: #context,
            static_tenant: #tenant,
            owner: #kernel::model::OwnerPolicy::#owner,
            state_revision: #revision,
            read_access: #read,
        }
    }
}

fn optional(text: Option<&LitStr>) -> TokenStream {
    match text {
        Some(text) => quote!(::core::option::Option::Some(#text)),
        None => quote!(::core::option::Option::None),
    }
}

fn initial(id: &Ident, kernel: &Path) -> TokenStream {
    quote! {
        fn initial(id: &#kernel::id::AggregateId) -> Self {
            let mut state = <Self as ::core::default::Default>::default();
            state.#id = ::std::string::String::from(id.as_str());
            state
        }
    }
}

fn after_hooks(hooks: &[Path], kernel: &Path) -> TokenStream {
    // Each at its own place, so that a wrong signature is reported there.
    let hooks = hooks.iter().map(|hook| {
        quote_spanned!(hook.span()=> {
            let hook: #kernel::model::AfterHook<Self> = #hook;
            hook
        })
    });
    quote! {
        fn after_hooks() -> ::std::vec::Vec<#kernel::model::AfterHook<Self>> {
            ::std::vec![#(#hooks),*]
        }
    }
}
