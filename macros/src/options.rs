//! Reading the options of an attribute, each at most once, with errors that say what to write.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{Attribute, LitInt, LitStr, Path, Token};

/// The errors found so far; an item is read to its end, so that all are shown at once.
#[derive(Default)]
pub(crate) struct Faults(Option<syn::Error>);

impl Faults {
    /// Adds an error.
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Adds an error at a span.
    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// The value, or the error that took its place.
    pub(crate) fn keep<T>(&mut self, value: syn::Result<T>) -> Option<T> {
        value.map_err(|error| self.push(error)).ok()
    }

    /// Whether there are none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All errors, if there are any.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// An option that may be given once, with the place where it was.
pub(crate) struct Once<T>(Option<(Span, T)>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Once<T> {
    /// Takes the value.
    pub(crate) fn set(&mut self, meta: &ParseNestedMeta<'_>, value: T) -> syn::Result<()> {
        if self.0.is_some() {
            return Err(meta.error(format!("`{}` is given twice: keep one", shown(&meta.path))));
        }
        self.0 = Some((span_of(&meta.path), value));
        Ok(())
    }

    /// The value.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref().map(|(_, value)| value)
    }

    /// Where it was given, if it was.
    pub(crate) fn span(&self) -> Option<Span> {
        self.0.as_ref().map(|(span, _)| *span)
    }

    /// Whether it was given.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }
}

impl Once<LitStr> {
    /// The text.
    pub(crate) fn text(&self) -> Option<String> {
        self.get().map(LitStr::value)
    }
}

/// Reads every attribute of a name, option by option.
pub(crate) fn read(
    attributes: &[Attribute],
    name: &str,
    faults: &mut Faults,
    mut option: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<()>,
) {
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident(name))
    {
        faults.keep(attribute.parse_nested_meta(|meta| option(&meta)));
    }
}

/// The text of `name = "text"`.
pub(crate) fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    value(meta, "a text", "\"…\"")
}

/// The text of `name = "text"`, where it is a name for the log and for paths.
pub(crate) fn name(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let literal = text(meta)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let text = literal.value();
    if text.is_empty() || !text.chars().all(fits) {
        return Err(syn::Error::new(
            literal.span(),
            "a name has letters, digits, `_`, `-` and `.`, and is not empty",
        ));
    }
    Ok(literal)
}

/// The number of `revision = 2`, from 1.
pub(crate) fn revision(meta: &ParseNestedMeta<'_>) -> syn::Result<u32> {
    let literal: LitInt = value(meta, "a number", "2")?;
    match literal.base10_parse() {
        Ok(0) | Err(_) => Err(syn::Error::new(
            literal.span(),
            "revisions are counted from 1: write `revision = 2` for the second",
        )),
        Ok(revision) => Ok(revision),
    }
}

/// The function of `policy = path`.
pub(crate) fn function(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    value(meta, "the path of a function", "path::of::function")
}

fn value<T: Parse>(meta: &ParseNestedMeta<'_>, what: &str, example: &str) -> syn::Result<T> {
    let name = shown(&meta.path);
    let wrong = |span| {
        syn::Error::new(
            span,
            format!("`{name}` takes {what}: write `{name} = {example}`"),
        )
    };
    if !meta.input.peek(Token![=]) {
        return Err(wrong(span_of(&meta.path)));
    }
    let value = meta.value()?;
    let span = value.span();
    value.parse().map_err(|_| wrong(span))
}

/// The error for an option that doesn't exist.
pub(crate) fn unknown(meta: &ParseNestedMeta<'_>, known: &[&str]) -> syn::Error {
    let known: Vec<_> = known.iter().map(|option| format!("`{option}`")).collect();
    meta.error(format!(
        "unknown option `{}`: there are {}",
        shown(&meta.path),
        known.join(", ")
    ))
}

/// A path as it was written.
pub(crate) fn shown(path: &Path) -> String {
    let parts: Vec<_> = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    parts.join("::")
}

/// Where a path stands.
pub(crate) fn span_of(path: &Path) -> Span {
    syn::spanned::Spanned::span(path)
}
