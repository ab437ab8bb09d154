//! The types of marked fields, as far as they can be told from how they are written.

use syn::{GenericArgument, PathArguments, Type};

/// The type in an `Option`.
pub(crate) fn optional(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else { return None };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

/// Whether a type is written as `String`.
pub(crate) fn is_string(of: &Type) -> bool {
    let Type::Path(path) = of else { return false };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == "String")
}
