//! Which partition of the log an aggregate lies in.
//!
//! The hash is part of the stored format: it must never change. It is xxh3-64 with seed 0 over
//! tenant, type and id, each followed by a zero byte (ids hold no control characters, so the
//! parts can't run into each other), taken modulo the number of partitions.

use xxhash_rust::xxh3::xxh3_64;

use crate::id::{AggregateKey, PartitionNo};

/// The hash of an aggregate's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHash(u64);

impl KeyHash {
    /// The hash of a key.
    pub fn of(key: &AggregateKey) -> Self {
        Self::of_parts([
            key.tenant.as_str(),
            key.aggregate_type.as_str(),
            key.id.as_str(),
        ])
    }

    /// The partition of the aggregate, of `count` partitions in all.
    pub fn partition(self, count: u32) -> PartitionNo {
        let number = self.0 % u64::from(count.max(1));
        PartitionNo(u32::try_from(number).expect("a remainder of a u32 fits in one"))
    }

    fn of_parts(parts: [&str; 3]) -> Self {
        Self(hash(parts))
    }
}

/// The partition of an aggregate, of `count` partitions in all.
pub fn partition_of(key: &AggregateKey, count: u32) -> PartitionNo {
    KeyHash::of(key).partition(count)
}

/// The partition of the aggregate with this tenant, type and id.
pub fn partition_of_parts(parts: [&str; 3], count: u32) -> PartitionNo {
    KeyHash::of_parts(parts).partition(count)
}

fn hash(parts: [&str; 3]) -> u64 {
    // Nearly all keys fit here, and hashing in one go is several times cheaper than in pieces.
    let mut short = [0_u8; 192];
    let length = parts.iter().map(|part| part.len() + 1).sum::<usize>();
    match short.get_mut(..length) {
        Some(bytes) => {
            let mut at = 0;
            for part in parts {
                bytes[at..at + part.len()].copy_from_slice(part.as_bytes());
                at += part.len() + 1;
            }
            xxh3_64(bytes)
        }
        None => {
            let bytes: Vec<u8> = parts
                .iter()
                .flat_map(|part| part.bytes().chain(std::iter::once(0)))
                .collect();
            xxh3_64(&bytes)
        }
    }
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

    #[test]
    fn long_keys_are_hashed_as_short_ones_are() {
        use xxhash_rust::xxh3::Xxh3;

        for length in [1, 64, 100, 186, 187, 188, 189, 400] {
            let id = "x".repeat(length);
            let parts = ["(0)", "a", &id];
            let mut pieces = Xxh3::new();
            for part in parts {
                pieces.update(part.as_bytes());
                pieces.update(&[0]);
            }
            let expected = u32::try_from(pieces.digest() % 1024).unwrap();
            assert_eq!(partition_of_parts(parts, 1024), PartitionNo(expected));
        }
    }
}
