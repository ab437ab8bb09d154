//! A channel between nodes of one test: what is sent goes through its written form, and links can
//! be cut as a test says.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wow_actors::Handle;
use wow_kernel::forward::{ForwardedCommand, Signal};
use wow_kernel::id::{NodeName, PartitionNo, Position};
use wow_kernel::ports::{ForwardError, ForwardReply, Member, PeerChannel, PeerHandler};

/// What becomes of a forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It arrives, and its answer comes back.
    Up,
    /// Nothing leaves.
    Down,
    /// It arrives, and its answer is lost.
    LosesAnswers,
    /// It is lost after it has left.
    LosesCalls,
    /// Too many are in flight already.
    Full,
    /// It arrives where its type is unknown.
    NotCapable,
}

/// The nodes that reach each other.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    nodes: HashMap<NodeName, Handle>,
    links: HashMap<NodeName, Link>,
    /// Those that hear no hint and no signal.
    deaf: HashSet<NodeName>,
    forwards: usize,
}

impl Network {
    /// A channel of one node; [`Network::join`] follows once it runs.
    pub fn channel(&self) -> Arc<dyn PeerChannel> {
        Arc::new(Channel(Arc::downgrade(&self.0)))
    }

    /// A node can be reached from now on.
    pub fn join(&self, name: &str, handle: &Handle) {
        let name = NodeName::trusted(name);
        self.0.lock().nodes.insert(name, handle.clone());
    }

    /// A node is gone.
    pub fn leave(&self, name: &str) {
        self.0.lock().nodes.remove(&NodeName::trusted(name));
    }

    /// What becomes of forwards to a node.
    pub fn link(&self, to: &str, link: Link) {
        self.0.lock().links.insert(NodeName::trusted(to), link);
    }

    /// A node hears no hint and no signal any more.
    pub fn deafen(&self, name: &str) {
        self.0.lock().deaf.insert(NodeName::trusted(name));
    }

    /// How many commands have left a node.
    pub fn forwards(&self) -> usize {
        self.0.lock().forwards
    }
}

struct Channel(Weak<Mutex<Inner>>);

impl Channel {
    fn hearing(&self, name: &NodeName) -> Option<Handle> {
        let inner = self.0.upgrade()?;
        let inner = inner.lock();
        match inner.deaf.contains(name) {
            true => None,
            false => inner.nodes.get(name).cloned(),
        }
    }
}

fn written(command: &ForwardedCommand) -> ForwardedCommand {
    let text = serde_json::to_string(command).unwrap();
    let read: ForwardedCommand = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *command);
    read
}

#[async_trait]
impl PeerChannel for Channel {
    async fn forward(
        &self,
        owner: &NodeName,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> Result<ForwardReply, ForwardError> {
        let not_sent = || ForwardError::NotSent("the link is down".to_owned());
        let (link, handle) = {
            let inner = self.0.upgrade().ok_or_else(not_sent)?;
            let mut inner = inner.lock();
            let link = inner.links.get(owner).copied().unwrap_or(Link::Up);
            if matches!(link, Link::Up | Link::LosesAnswers | Link::LosesCalls) {
                inner.forwards += 1;
            }
            (link, inner.nodes.get(owner).cloned())
        };
        let handle = handle.ok_or_else(not_sent)?;
        let no_answer = || ForwardError::NoAnswer("the link was cut".to_owned());
        match link {
            Link::Up => Ok(handle.run_forwarded(written(&command), accepted).await),
            Link::Down => Err(not_sent()),
            Link::Full => Err(ForwardError::Full),
            Link::NotCapable => Ok(ForwardReply::NotCapable),
            Link::LosesCalls => Err(no_answer()),
            Link::LosesAnswers => {
                handle.run_forwarded(written(&command), accepted).await;
                Err(no_answer())
            }
        }
    }

    fn signal(&self, origin: &NodeName, signals: Vec<Signal>) {
        if let Some(handle) = self.hearing(origin) {
            let text = serde_json::to_string(&signals).unwrap();
            handle.signalled(serde_json::from_str(&text).unwrap());
        }
    }

    fn hint_position(&self, owner: &NodeName, partition: PartitionNo, position: Position) {
        if let Some(handle) = self.hearing(owner) {
            handle.position_hinted(partition, position);
        }
    }

    fn hint_ownership(&self) {
        let Some(inner) = self.0.upgrade() else {
            return;
        };
        let names: Vec<_> = inner.lock().nodes.keys().cloned().collect();
        for handle in names.iter().filter_map(|name| self.hearing(name)) {
            handle.ownership_hinted();
        }
    }

    fn set_members(&self, _members: &[Member]) {}
}
