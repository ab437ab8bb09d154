//! Derives for what users write: `#[derive(Event)]`, `#[derive(Command)]`, `#[derive(Aggregate)]`.
//!
//! Each reads one item with its `#[serde(…)]` attributes and writes one impl of the trait of the
//! same name in `wow_kernel::model`, and nothing else: no hidden types, no registration, no
//! statics. Every mistake is a compile error at the place of the mistake that says what to write
//! instead; `tests/ui` holds one file for each.
//!
//! ```text
//! event      enum → names, revisions, bodies       access   rules of who may send or read
//! command    struct → rules, route, variables      options  reading `name = "…"` once
//! aggregate  struct → spec, commands, hooks        serde    what serde was told about names
//! kernel     where the traits are found
//! ```

mod access;
mod aggregate;
mod command;
mod event;
mod field_type;
mod kernel;
mod options;
mod serde;

use proc_macro::TokenStream;
use syn::{DeriveInput, Path, parse_macro_input};

/// Implements `wow_kernel::model::Event` for an enum: each variant is one event of an aggregate.
///
/// The enum derives serde's traits too, which read and write the bodies; camelCase bodies come
/// from `#[serde(rename_all_fields = "camelCase")]`. On a variant:
///
/// | `#[event(…)]` | meaning |
/// |---|---|
/// | `name = "x"` | its name in the log; the variant's in snake_case unless declared |
/// | `alias = "old"` | a name it had before; may be repeated |
/// | `revision = 2` | the revision of the bodies written now; 1 unless declared |
/// | `upcast = path` | a `fn(u32, Value) -> Result<Value, String>` that lifts older bodies |
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    derive(&parse_macro_input!(input), event::expand, event::stub)
}

/// Implements `wow_kernel::model::Command` for a struct.
///
/// | `#[command(…)]` | meaning |
/// |---|---|
/// | `creates`, `upserts`, `updates` | whether the aggregate has to exist; `updates` unless declared |
/// | `name = "x"` | its name; the struct's in snake_case unless declared |
/// | `method = "PATCH"` | the verb of its route; POST where it creates, else PUT |
/// | `action = "x/{part}"` | the end of its path; the name unless declared, may be empty |
/// | `public`, `authenticated`, `owner`, `roles("a", "b")`, `policy = path` | who may send it |
/// | `pure` | deciding does no I/O |
/// | `blocking` | deciding blocks its thread |
/// | `recovers` | may be sent to a deleted aggregate |
/// | `lenient` | fields that the struct doesn't know are passed over |
/// | `validate` | runs the rules of `#[derive(garde::Validate)]` |
///
/// On a field: `#[command(id)]` marks the aggregate id, `#[command(path = "part")]` and
/// `#[command(header = "Name")]` fill the field from the request before the body is decoded.
#[proc_macro_derive(Command, attributes(command))]
pub fn derive_command(input: TokenStream) -> TokenStream {
    derive(&parse_macro_input!(input), command::expand, command::stub)
}

/// Implements `wow_kernel::model::Aggregate` for the struct that is the state.
///
/// | `#[aggregate(…)]` | meaning |
/// |---|---|
/// | `commands(A, B)` | the commands it decides, each with an `impl Decide<A>` |
/// | `name = "x"` | its name in the log; the struct's in snake_case unless declared |
/// | `resource = "x"` | its path segment; the name unless declared |
/// | `context = "x"` | its context, where that is not the node's own |
/// | `tenant = "(0)"` | the one tenant of all its aggregates |
/// | `owner = "never"` | `never` (unless declared), `always`, or `aggregate_id` |
/// | `revision = 2` | raised when `evolve` or the state's shape changes |
/// | `read(owner)` | who may read: `public`, `authenticated`, `owner`, `roles(…)`, `policy = path` |
/// | `after(hook)` | functions that run after each command function |
///
/// A `String` field marked with `#[aggregate(id)]` holds the aggregate's id from the start.
#[proc_macro_derive(Aggregate, attributes(aggregate))]
pub fn derive_aggregate(input: TokenStream) -> TokenStream {
    derive(
        &parse_macro_input!(input),
        aggregate::expand,
        aggregate::stub,
    )
}

type Expand = fn(&DeriveInput, &Path) -> syn::Result<proc_macro2::TokenStream>;
type Stub = fn(&DeriveInput, &Path) -> proc_macro2::TokenStream;

/// Expands, or answers with the errors and an empty impl, so that one mistake doesn't bring a
/// dozen "trait not implemented" errors with it.
fn derive(input: &DeriveInput, expand: Expand, stub: Stub) -> TokenStream {
    let kernel = match kernel::path() {
        Ok(kernel) => kernel,
        Err(error) => return error.into_compile_error().into(),
    };
    if let Err(error) = without_generics(input) {
        return error.into_compile_error().into();
    }
    expand(input, &kernel)
        .unwrap_or_else(|error| {
            let mut code = error.into_compile_error();
            code.extend(stub(input, &kernel));
            code
        })
        .into()
}

fn without_generics(input: &DeriveInput) -> syn::Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    Err(syn::Error::new_spanned(
        &input.generics,
        "a type with a name in the log has no generic parameters: write one type for each",
    ))
}
