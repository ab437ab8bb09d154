//! What an order asks of others. Here they answer from memory; over a network they would be
//! other types behind the same traits.

use std::collections::BTreeMap;

use async_trait::async_trait;
use wow::prelude::*;

/// Knows what products cost.
#[async_trait]
pub(crate) trait Pricing: Send + Sync {
    /// The price of one piece in a shop.
    ///
    /// # Errors
    /// A rejection, where it can't be told.
    async fn price(&self, shop: &str, product_id: &str) -> Result<i64, Rejection>;
}

/// Knows what is in stock.
#[async_trait]
pub(crate) trait Inventory: Send + Sync {
    /// How many pieces there are.
    ///
    /// # Errors
    /// A rejection, where it can't be told.
    async fn stock(&self, product_id: &str) -> Result<i64, Rejection>;
}

/// Everything costs the same, unless a shop has its own price.
pub(crate) struct FlatPrices {
    pub(crate) price: i64,
    pub(crate) by_shop: BTreeMap<String, i64>,
}

impl Default for FlatPrices {
    fn default() -> Self {
        Self {
            price: 10,
            by_shop: BTreeMap::new(),
        }
    }
}

#[async_trait]
impl Pricing for FlatPrices {
    async fn price(&self, shop: &str, _product_id: &str) -> Result<i64, Rejection> {
        Ok(self.by_shop.get(shop).copied().unwrap_or(self.price))
    }
}

/// There is the same number of everything.
pub(crate) struct FlatStock {
    pub(crate) pieces: i64,
}

impl Default for FlatStock {
    fn default() -> Self {
        Self { pieces: 100 }
    }
}

#[async_trait]
impl Inventory for FlatStock {
    async fn stock(&self, _product_id: &str) -> Result<i64, Rejection> {
        Ok(self.pieces)
    }
}
