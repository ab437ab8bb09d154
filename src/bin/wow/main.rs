//! The node that ships: the example domains behind the command line.

mod domains;

use wow::prelude::*;

fn main() {
    let mut services = Services::default();
    domains::provide(&mut services);
    let registry = domains::register(RegistryBuilder::new("example"));
    drop((registry, services));
}
