//! A map by id within a tenant and type, which grows in small steps.
//!
//! A hash map that doubles moves every key at once, and with millions of keys that holds up an
//! append, and all that wait for its lock, for a tenth of a second. So the index is many small
//! maps, and each key carries its hash along: moving it reads nothing but the map itself.

use std::collections::{HashMap, hash_map};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use super::Hashing;

/// How many maps an index has.
const SHARDS: usize = 64;

/// The number of a tenant's type, within one log.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Scope(pub(super) u32);

/// Values by id.
pub(super) struct Index<K, V> {
    hashing: Hashing,
    shards: Vec<HashMap<Key<K>, V, BuildHasherDefault<Carried>>>,
}

/// An id with its hash.
#[derive(PartialEq, Eq)]
pub(super) struct Key<K> {
    hash: u64,
    scope: Scope,
    id: K,
}

impl<K> Hash for Key<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hands on the hash that a key carries.
#[derive(Default)]
struct Carried(u64);

impl Hasher for Carried {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("a key hashes to the number it carries");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<K: Clone + Eq + Hash, V> Index<K, V> {
    pub(super) fn get(&self, scope: Scope, id: &K) -> Option<&V> {
        let key = self.key(scope, id);
        self.shards[shard(&key)].get(&key)
    }

    pub(super) fn entry(&mut self, scope: Scope, id: &K) -> hash_map::Entry<'_, Key<K>, V> {
        let key = self.key(scope, id);
        self.shards[shard(&key)].entry(key)
    }

    fn key(&self, scope: Scope, id: &K) -> Key<K> {
        Key {
            hash: self.hashing.hash_one((scope, id)),
            scope,
            id: id.clone(),
        }
    }
}

/// The map of a key, by bits that the map itself looks at neither for its slot nor its tag.
fn shard<K>(key: &Key<K>) -> usize {
    (key.hash >> 32) as usize % SHARDS
}

impl<K, V> Default for Index<K, V> {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| HashMap::default()).collect();
        Self {
            hashing: Hashing::default(),
            shards,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_in_its_own_scope_alone() {
        let mut index: Index<String, usize> = Index::default();
        for number in 0..10_000 {
            let scope = Scope(u32::from(number % 2 == 0));
            *index
                .entry(scope, &format!("id-{}", number / 2))
                .or_default() = number;
        }
        for number in 0..10_000 {
            let scope = Scope(u32::from(number % 2 == 0));
            assert_eq!(
                index.get(scope, &format!("id-{}", number / 2)),
                Some(&number)
            );
        }
        assert_eq!(index.get(Scope(2), &"id-1".to_owned()), None);
        assert!(
            index.shards.iter().all(|shard| !shard.is_empty()),
            "a map is never used"
        );
    }

    #[test]
    fn ids_of_one_hash_are_told_apart() {
        let key = |id: &'static str| Key {
            hash: 7,
            scope: Scope(0),
            id,
        };
        let mut map: HashMap<_, _, BuildHasherDefault<Carried>> = HashMap::default();
        map.insert(key("a"), 1);
        map.insert(key("b"), 2);
        assert_eq!(
            (map.get(&key("a")), map.get(&key("b"))),
            (Some(&1), Some(&2))
        );
        assert_eq!(map.get(&key("c")), None);
    }
}
