//! `[node]`: who this node is.

use wow_kernel::id::NodeName;

use super::keys::{Section, Visitor};

/// Who this node is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeConfig {
    /// Its name, unique in the service (R70); [`super::Config::node_name`] works it out where
    /// none is set.
    pub name: Option<NodeName>,
}

impl Section for NodeConfig {
    const NAME: &'static str = "node";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("name", &mut self.name);
    }
}
