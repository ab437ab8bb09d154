//! The kernel's port to other nodes, over one connection to each member.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;
use wow_kernel::forward::{ForwardedCommand, Signal};
use wow_kernel::id::{NodeName, PartitionNo, Position};
use wow_kernel::ports::{ForwardError, ForwardReply, Member, PeerChannel};

use super::ClusterSettings;
use super::message::Message;
use super::peer::Peer;

/// The channel of this node. Its connections live on the runtime that is handed in.
pub struct ClusterChannel {
    settings: Arc<ClusterSettings>,
    runtime: Handle,
    peers: RwLock<HashMap<NodeName, Known>>,
}

/// A member, and the connection to it.
struct Known {
    incarnation: Uuid,
    address: String,
    peer: Arc<Peer>,
}

impl fmt::Debug for ClusterChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterChannel")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl ClusterChannel {
    /// A channel that knows nobody yet.
    #[must_use]
    pub fn new(settings: Arc<ClusterSettings>, runtime: Handle) -> Self {
        Self {
            settings,
            runtime,
            peers: RwLock::default(),
        }
    }

    /// Closes every connection.
    pub fn close(&self) {
        self.peers.write().clear();
    }

    fn peer(&self, name: &NodeName) -> Option<Arc<Peer>> {
        self.peers
            .read()
            .get(name)
            .map(|known| Arc::clone(&known.peer))
    }

    fn say(&self, to: &NodeName, message: &Message) {
        let Some(peer) = self.peer(to) else {
            return;
        };
        match message.encode() {
            Ok(frame) => {
                if !peer.say(frame) {
                    tracing::debug!(%to, "no room for a message; storage makes up for it");
                }
            }
            Err(error) => tracing::error!(%error, "a message can't be written"),
        }
    }
}

#[async_trait]
impl PeerChannel for ClusterChannel {
    async fn forward(
        &self,
        owner: &NodeName,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> Result<ForwardReply, ForwardError> {
        match self.peer(owner) {
            Some(peer) => peer.forward(command, accepted).await,
            None => Err(ForwardError::NotSent("the member isn't known".to_owned())),
        }
    }

    fn signal(&self, origin: &NodeName, signals: Vec<Signal>) {
        self.say(origin, &Message::Signals(signals));
    }

    fn hint_position(&self, owner: &NodeName, partition: PartitionNo, position: Position) {
        self.say(owner, &Message::Position(partition, position));
    }

    fn hint_ownership(&self) {
        let names: Vec<_> = self.peers.read().keys().cloned().collect();
        for name in names {
            self.say(&name, &Message::Ownership);
        }
    }

    fn set_members(&self, members: &[Member]) {
        let others: HashMap<_, _> = members
            .iter()
            .filter(|member| !member.valid_for.is_zero() && member.name != self.settings.node)
            .map(|member| (&member.name, member))
            .collect();
        let mut peers = self.peers.write();
        peers.retain(|name, known| {
            others.get(name).is_some_and(|member| {
                member.incarnation == known.incarnation && member.address == known.address
            })
        });
        for (name, member) in others {
            peers.entry(name.clone()).or_insert_with(|| {
                tracing::info!(peer = %name, address = member.address, "member joined");
                Known {
                    incarnation: member.incarnation,
                    address: member.address.clone(),
                    peer: Arc::new(Peer::start(
                        &self.runtime,
                        Arc::clone(&self.settings),
                        name.clone(),
                        member.address.clone(),
                    )),
                }
            });
        }
    }
}
