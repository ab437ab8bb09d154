//! Rules of who may send a command or read a type, as attributes write them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{LitStr, Path, Token, parenthesized};

use crate::options::{Once, function};

/// The names of the rules, for errors.
pub(crate) const RULES: [&str; 5] = ["public", "authenticated", "owner", "roles", "policy"];

/// A rule.
pub(crate) enum Access {
    Public,
    Authenticated,
    Owner,
    Roles(Vec<LitStr>),
    Policy(Path),
}

/// Takes the option if it is an access rule, and says whether it was one.
pub(crate) fn read(meta: &ParseNestedMeta<'_>, rule: &mut Once<Access>) -> syn::Result<bool> {
    let found = if meta.path.is_ident("public") {
        Access::Public
    } else if meta.path.is_ident("authenticated") {
        Access::Authenticated
    } else if meta.path.is_ident("owner") {
        Access::Owner
    } else if meta.path.is_ident("roles") {
        Access::Roles(roles(meta)?)
    } else if meta.path.is_ident("policy") {
        Access::Policy(function(meta)?)
    } else {
        return Ok(false);
    };
    if rule.is_set() {
        return Err(meta.error(
            "there is one access rule: keep one of `public`, `authenticated`, `owner`, \
             `roles(…)`, `policy = …`; a policy function can combine them",
        ));
    }
    rule.set(meta, found)?;
    Ok(true)
}

fn roles(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<LitStr>> {
    let wrong = || meta.error("`roles` takes the roles that may: write `roles(\"shipper\")`");
    if !meta.input.peek(syn::token::Paren) {
        return Err(wrong());
    }
    let list;
    parenthesized!(list in meta.input);
    let roles = Punctuated::<LitStr, Token![,]>::parse_terminated(&list).map_err(|_| wrong())?;
    if roles.is_empty() {
        return Err(wrong());
    }
    Ok(roles.into_iter().collect())
}

/// The rule as code; the default one where none was given.
pub(crate) fn tokens(rule: &Once<Access>, kernel: &Path) -> TokenStream {
    let rule = match rule.get() {
        None => quote!(Default),
        Some(Access::Public) => quote!(Public),
        Some(Access::Authenticated) => quote!(Authenticated),
        Some(Access::Owner) => quote!(Owner),
        Some(Access::Roles(roles)) => quote!(Roles(&[#(#roles),*])),
        Some(Access::Policy(policy)) => quote!(Policy(#policy)),
    };
    quote!(#kernel::model::AccessRule::#rule)
}
