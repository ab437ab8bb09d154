//! `[router]`: which node runs the commands of an aggregate type (R20). Its keys are the names
//! of aggregate types.

use std::collections::BTreeMap;

use super::keys::{Section, Visitor};
use super::setting::choice;

choice! {
    /// Which node runs the commands of an aggregate type.
    pub enum RouterKind {
        /// The owner of the aggregate's partition.
        Partitioned = "partitioned",
        /// The node that received it.
        Local = "local",
        /// The owner, by way of the context's command topic.
        Kafka = "kafka",
    }
}

/// The routers that are set; all other aggregate types are partitioned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouterConfig {
    /// By aggregate type. The node refuses to start with a type that it doesn't know.
    pub aggregates: BTreeMap<String, RouterKind>,
}

impl RouterConfig {
    /// The router of an aggregate type.
    pub fn of(&self, aggregate_type: &str) -> RouterKind {
        self.aggregates
            .get(aggregate_type)
            .copied()
            .unwrap_or(RouterKind::Partitioned)
    }
}

impl Section for RouterConfig {
    const NAME: &'static str = "router";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.rest(&mut self.aggregates);
    }
}
