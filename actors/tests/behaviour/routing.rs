//! Each aggregate type has its router, and the table decides (R20).

use std::collections::HashMap;

use wow_kernel::id::AggregateType;
use wow_kernel::router::RouterKind;

use crate::support::{World, code, note, paused};

#[test]
fn r20_every_router_runs_commands_here_on_a_single_node() {
    paused(async {
        // A topic that doesn't exist is a reason to run here, and is counted.
        for (router, fallbacks) in [
            (RouterKind::Partitioned, 0.0),
            (RouterKind::Local, 0.0),
            (RouterKind::Kafka, 1.0),
        ] {
            let world = World::new();
            let mut plan = world.here();
            plan.routers = HashMap::from([(AggregateType::trusted("nasty"), router)]);
            let node = plan.start().await;
            assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
            let counted = match fallbacks {
                0.0 => 0.0,
                _ => node.metric("wow_local_fallbacks_total", &[("reason", "no_owner")]),
            };
            assert_eq!(counted, fallbacks, "{router}");
            node.stop().await;
        }
    });
}
