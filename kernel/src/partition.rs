//! Which partition of the log an aggregate lies in.
//!
//! The hash is part of the stored format: it must never change. It is xxh3-64 with seed 0 over
//! tenant, type and id, each followed by a zero byte (ids hold no control characters, so the
//! parts can't run into each other), taken modulo the number of partitions.

use xxhash_rust::xxh3::Xxh3;

use crate::id::{AggregateKey, PartitionNo};

/// The partition of an aggregate, of `count` partitions in all.
pub fn partition_of(key: &AggregateKey, count: u32) -> PartitionNo {
    let mut hash = Xxh3::new();
    for part in [
        key.tenant.as_str(),
        key.aggregate_type.as_str(),
        key.id.as_str(),
    ] {
        hash.update(part.as_bytes());
        hash.update(&[0]);
    }
    let number = hash.digest() % u64::from(count.max(1));
    PartitionNo(u32::try_from(number).expect("a remainder of a u32 fits in one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AggregateId, AggregateType, TenantId};

    #[test]
    fn the_partition_of_an_aggregate_never_changes() {
        // Published test vectors (docs/semantics.md): other implementations must agree.
        for (tenant, aggregate_type, id, partition) in [
            ("(0)", "account", "sourceId", 26),
            ("(0)", "account", "targetId", 15),
            ("acme", "order", "0190163e-9d6a-7e3c-8d2a-5b1f6c1d2e3f", 53),
        ] {
            let key = AggregateKey {
                tenant: TenantId::trusted(tenant),
                aggregate_type: AggregateType::trusted(aggregate_type),
                id: AggregateId::trusted(id),
            };
            assert_eq!(partition_of(&key, 64), PartitionNo(partition), "{key}");
        }
    }
}
