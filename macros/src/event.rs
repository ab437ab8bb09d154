//! `#[derive(Event)]`: an enum of events to their names, revisions and bodies.

use std::collections::HashSet;

use heck::ToSnakeCase;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Fields, LitStr, Path, Variant};

use crate::options::{self, Faults, Once};
use crate::serde;

#[derive(Default)]
struct Options {
    name: Once<LitStr>,
    aliases: Vec<LitStr>,
    revision: Once<u32>,
    upcast: Once<Path>,
}

/// The impl.
pub(crate) fn expand(input: &DeriveInput, kernel: &Path) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            &input.ident,
            "the events of an aggregate are the variants of one enum: \
             write `enum …Event { Created { … }, … }`",
        ));
    };
    let mut faults = Faults::default();
    refuse_container(&input.attrs, &mut faults);
    let mut taken = HashSet::new();
    let mut specs = Vec::new();
    let mut tags = Vec::new();
    for variant in &data.variants {
        refuse_variant(variant, &mut faults);
        let options = read_options(variant, &mut faults);
        specs.push(spec(variant, &options, kernel, &mut taken, &mut faults));
        let tag = variant.ident.unraw().to_string();
        let has_body = !matches!(variant.fields, Fields::Unit);
        tags.push(quote!((#tag, #has_body)));
    }
    if data.variants.is_empty() {
        faults.at(
            input.ident.span(),
            "an event enum without variants has no events: write one",
        );
    }
    faults.finish()?;

    let name = &input.ident;
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let indices = 0..data.variants.len();
    Ok(quote! {
        #[automatically_derived]
        impl #kernel::model::Event for #name {
            fn specs() -> &'static [#kernel::model::EventSpec] {
                &[#(#specs),*]
            }

            fn index(&self) -> usize {
                match self {
                    #(Self::#variants { .. } => #indices,)*
                }
            }

            fn encode(&self) -> ::core::result::Result<
                ::std::boxed::Box<#kernel::serde_json::value::RawValue>,
                #kernel::serde_json::Error,
            > {
                const TAGS: &[(&str, bool)] = &[#(#tags),*];
                let (tag, _) = TAGS[#kernel::model::Event::index(self)];
                #kernel::model::encode_variant(self, tag)
            }

            fn decode(
                index: usize,
                body: &#kernel::serde_json::value::RawValue,
            ) -> ::core::result::Result<Self, #kernel::serde_json::Error> {
                const TAGS: &[(&str, bool)] = &[#(#tags),*];
                let (tag, has_body) = TAGS[index];
                #kernel::model::decode_variant(tag, has_body, body)
            }
        }
    })
}

/// An empty impl, beside the errors.
pub(crate) fn stub(input: &DeriveInput, kernel: &Path) -> TokenStream {
    let name = &input.ident;
    quote! {
        impl #kernel::model::Event for #name {
            fn specs() -> &'static [#kernel::model::EventSpec] { &[] }
            fn index(&self) -> usize { 0 }
            fn encode(&self) -> ::core::result::Result<
                ::std::boxed::Box<#kernel::serde_json::value::RawValue>,
                #kernel::serde_json::Error,
            > { unreachable!() }
            fn decode(
                _: usize,
                _: &#kernel::serde_json::value::RawValue,
            ) -> ::core::result::Result<Self, #kernel::serde_json::Error> { unreachable!() }
        }
    }
}

/// The log keeps name and body apart, so serde must write an event in its plain form:
/// `{"Variant": body}`.
fn refuse_container(attributes: &[Attribute], faults: &mut Faults) {
    for option in serde::options(attributes) {
        let option = option.path();
        let advice = match options::shown(option).as_str() {
            "tag" | "content" | "untagged" => {
                "the log keeps an event's name beside its body: remove it"
            }
            "rename_all" => {
                "events are named by `#[event(name = \"…\")]`, in snake_case unless declared; \
                 for the fields write `rename_all_fields = \"…\"`"
            }
            "rename" | "from" | "try_from" | "into" | "remote" => {
                "an event is written as its variant: remove it"
            }
            _ => continue,
        };
        faults.push(syn::Error::new_spanned(option, advice));
    }
}

fn refuse_variant(variant: &Variant, faults: &mut Faults) {
    for option in serde::options(&variant.attrs) {
        let option = option.path();
        let advice = match options::shown(option).as_str() {
            "rename" => "an event is named for the log: write `#[event(name = \"…\")]`",
            "alias" => "an event's older names are the log's: write `#[event(alias = \"…\")]`",
            "rename_all" => {
                "the fields of all events are named alike: \
                 write `#[serde(rename_all_fields = \"…\")]` on the enum"
            }
            "tag" | "content" | "untagged" => {
                "the log keeps an event's name beside its body: remove it"
            }
            "skip" | "skip_serializing" | "skip_deserializing" | "other" => {
                "an event that can't be written and read back can't be in the log: remove it"
            }
            _ => continue,
        };
        faults.push(syn::Error::new_spanned(option, advice));
    }
}

fn read_options(variant: &Variant, faults: &mut Faults) -> Options {
    let mut found = Options::default();
    options::read(&variant.attrs, "event", faults, |meta| {
        if meta.path.is_ident("name") {
            found.name.set(meta, options::name(meta)?)
        } else if meta.path.is_ident("alias") {
            found.aliases.push(options::name(meta)?);
            Ok(())
        } else if meta.path.is_ident("revision") {
            found.revision.set(meta, options::revision(meta)?)
        } else if meta.path.is_ident("upcast") {
            found.upcast.set(meta, options::function(meta)?)
        } else {
            Err(options::unknown(
                meta,
                &["name", "alias", "revision", "upcast"],
            ))
        }
    });
    found
}

fn spec(
    variant: &Variant,
    options: &Options,
    kernel: &Path,
    taken: &mut HashSet<String>,
    faults: &mut Faults,
) -> TokenStream {
    let name = match options.name.get() {
        Some(name) => name.clone(),
        None => {
            let name = variant.ident.unraw().to_string().to_snake_case();
            LitStr::new(&name, variant.ident.span())
        }
    };
    let aliases = &options.aliases;
    for name in std::iter::once(&name).chain(aliases) {
        if !taken.insert(name.value()) {
            let message = format!("the name `{}` is taken by another event", name.value());
            faults.at(name.span(), message);
        }
    }
    let revision = options.revision.get().copied().unwrap_or(1);
    let upcast = match (options.upcast.get(), revision) {
        (Some(upcast), 2..) => quote!(::core::option::Option::Some(#upcast)),
        (None, 2..) => {
            faults.at(
                options.revision.span().unwrap_or_else(|| variant.span()),
                "bodies of earlier revisions have to be lifted: write `upcast = function`, a \
                 `fn(u32, Value) -> Result<Value, String>`",
            );
            quote!()
        }
        (Some(upcast), _) => {
            faults.push(syn::Error::new_spanned(
                upcast,
                "there is no revision before the first: write `revision = 2` with it",
            ));
            quote!()
        }
        (None, _) => quote!(::core::option::Option::None),
    };
    quote! {
        #kernel::model::EventSpec {
            name: #name,
            aliases: &[#(#aliases),*],
            revision: #revision,
            upcast: #upcast,
        }
    }
}
