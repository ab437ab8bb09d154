//! Where the deriving crate finds the traits: in the facade, or in the kernel alone.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::Span;
use quote::format_ident;
use syn::{Path, parse_quote};

/// The path of the kernel, as the deriving crate reaches it.
///
/// Both packages name themselves (`extern crate self as …`), so one path holds for a package's
/// library and for its binaries, examples and tests.
pub(crate) fn path() -> syn::Result<Path> {
    if let Ok(found) = crate_name("wow") {
        let wow = match found {
            FoundCrate::Itself => format_ident!("wow"),
            FoundCrate::Name(name) => format_ident!("{name}"),
        };
        return Ok(parse_quote!(::#wow::kernel));
    }
    match crate_name("wow-kernel") {
        Ok(FoundCrate::Itself) => Ok(parse_quote!(::wow_kernel)),
        Ok(FoundCrate::Name(name)) => {
            let kernel = format_ident!("{name}");
            Ok(parse_quote!(::#kernel))
        }
        Err(_) => Err(syn::Error::new(
            Span::call_site(),
            "the traits of this derive are not found: \
             add `wow` or `wow-kernel` to [dependencies] in Cargo.toml",
        )),
    }
}
