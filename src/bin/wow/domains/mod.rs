//! The domains that ship with the node: what to try first, and what to copy.
//!
//! | folder | what it shows |
//! |---|---|
//! | `account` | commands, events, a saga that keeps money safe |
//! | `cart` | an aggregate that is its owner's, upserts, a command without events |
//! | `order` | services in decide, owners, roles and spaces, a hook, a transformer |

mod account;
mod cart;
mod order;

use wow::prelude::*;

pub(crate) use account::CreateAccount;
pub(crate) use cart::AddCartItem;

/// Registers every type of every domain.
pub(crate) fn register(registry: RegistryBuilder) -> RegistryBuilder {
    let registry = account::register(registry);
    let registry = cart::register(registry);
    order::register(registry)
}

/// Provides what command functions ask for.
pub(crate) fn provide(services: &mut Services) {
    order::provide(services);
}

/// Gives a node every domain.
pub(crate) fn node(node: NodeBuilder) -> NodeBuilder {
    node.types(register).services(provide)
}

/// A rule for fields: a text that says something.
fn not_blank(text: &str, _context: &()) -> garde::Result {
    match text.trim().is_empty() {
        true => Err(garde::Error::new("must not be blank")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_domains_fit_together() {
        let registry = register(RegistryBuilder::new("example")).build().unwrap();
        let types: Vec<_> = registry
            .aggregates()
            .iter()
            .map(|known| known.spec.name)
            .collect();
        assert_eq!(types, ["account", "cart", "order"]);
        let sagas: Vec<_> = registry.sagas().iter().map(|saga| saga.name).collect();
        assert_eq!(sagas, ["TransferSaga", "CartSaga"]);
    }
}
