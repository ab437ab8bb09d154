//! The channel over real sockets.

#![allow(clippy::unwrap_used, reason = "tests")]

mod sent;
mod strangers;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;
use wow_kernel::access::Principal;
use wow_kernel::forward::{ForwardedAnswer, ForwardedCommand, Signal};
use wow_kernel::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, PartitionNo, Position,
    RequestId, SpaceId, TenantId,
};
use wow_kernel::ports::{
    ForwardError, ForwardReply, Member, MemberState, PeerChannel, PeerHandler,
};
use wow_kernel::wait::{FunctionInfo, FunctionKind, Stage, WaitPlan};

use super::message::Message;
use super::{BoundCluster, ClusterChannel, ClusterServer, ClusterSettings, ClusterToken};

const FRAME_BYTES_MAX: usize = 1024 * 1024;

fn settings(node: &str, token: &str) -> Arc<ClusterSettings> {
    Arc::new(ClusterSettings {
        node: NodeName::trusted(node),
        token: ClusterToken::new(token).unwrap(),
        tls: None,
        forwards: 4,
        reply_timeout: None,
        frame_bytes_max: FRAME_BYTES_MAX,
    })
}

fn command(body: &str, time_left: Duration) -> ForwardedCommand {
    ForwardedCommand {
        command_id: CommandId(Uuid::now_v7()),
        key: AggregateKey {
            tenant: TenantId::default_tenant(),
            aggregate_type: AggregateType::trusted("account"),
            id: AggregateId::trusted("ann"),
        },
        owner: OwnerId::none(),
        space: SpaceId::none(),
        command_type: "deposit".to_owned(),
        body: body.to_owned(),
        request_id: RequestId::trusted("r-1"),
        request_id_made: true,
        aggregate_id_made: false,
        expected_version: Some(7),
        wait: WaitPlan::until(Stage::Snapshot),
        time_left,
        chain: Vec::new(),
        origin: NodeName::trusted("a"),
        headers: vec![("traceparent".to_owned(), "00-1-2-3".to_owned())],
        principal: Principal::service("test"),
    }
}

/// A node that answers what its test says, and remembers what it was told.
struct Fake {
    commands: mpsc::UnboundedSender<(ForwardedCommand, Held)>,
    told: Mutex<Vec<String>>,
}

/// A command whose test has not answered yet.
struct Held {
    accepted: oneshot::Sender<()>,
    reply: oneshot::Sender<ForwardReply>,
}

impl Fake {
    fn new() -> (Arc<Self>, Commands) {
        let (commands, received) = mpsc::unbounded_channel();
        let told = Mutex::default();
        (Arc::new(Self { commands, told }), received)
    }

    async fn told(&self, count: usize) -> Vec<String> {
        while self.told.lock().len() < count {
            tokio::task::yield_now().await;
        }
        self.told.lock().clone()
    }
}

#[async_trait]
impl PeerHandler for Fake {
    async fn run_forwarded(
        &self,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> ForwardReply {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send((command, Held { accepted, reply }));
        answer.await.unwrap_or(ForwardReply::NotOwner)
    }

    fn signalled(&self, signals: Vec<Signal>) {
        let mut told = self.told.lock();
        told.extend(
            signals
                .iter()
                .map(|signal| format!("{} {}", signal.stage, signal.command_id)),
        );
    }

    fn position_hinted(&self, partition: PartitionNo, position: Position) {
        self.told.lock().push(format!("{partition} at {position}"));
    }

    fn ownership_hinted(&self) {
        self.told.lock().push("ownership".to_owned());
    }
}

type Commands = mpsc::UnboundedReceiver<(ForwardedCommand, Held)>;

async fn serve(token: &str) -> (ClusterServer, String, Arc<Fake>, Commands) {
    serve_with(settings("b", token)).await
}

async fn serve_with(
    settings: Arc<ClusterSettings>,
) -> (ClusterServer, String, Arc<Fake>, Commands) {
    let bound = BoundCluster::bind(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let address = bound.address().to_string();
    let (fake, commands) = Fake::new();
    let handler: Arc<dyn PeerHandler> = fake.clone();
    let server = bound.serve(&Handle::current(), settings, handler);
    (server, address, fake, commands)
}

fn member(name: &str, address: &str) -> Member {
    Member {
        name: NodeName::trusted(name),
        incarnation: Uuid::from_u128(1),
        address: address.to_owned(),
        state: MemberState::Live,
        protocol_min: 1,
        protocol_max: 1,
        valid_for: Duration::from_secs(10),
    }
}

fn channel(token: &str, address: &str) -> Arc<ClusterChannel> {
    channel_with(settings("a", token), address)
}

fn channel_with(settings: Arc<ClusterSettings>, address: &str) -> Arc<ClusterChannel> {
    let channel = ClusterChannel::new(settings, Handle::current());
    channel.set_members(&[member("b", address)]);
    Arc::new(channel)
}

const LONG: Duration = Duration::from_secs(60);

async fn forward(
    channel: &ClusterChannel,
    time_left: Duration,
) -> Result<ForwardReply, ForwardError> {
    let (accepted, _) = oneshot::channel();
    let to = NodeName::trusted("b");
    channel
        .forward(&to, command("{}", time_left), accepted)
        .await
}

fn done(version: u64) -> ForwardReply {
    ForwardReply::Done(ForwardedAnswer::Committed {
        version,
        result: Some("{\"a\":1}".to_owned()),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_arrives_whole_and_its_answer_comes_back() {
    let (server, address, _, mut commands) = serve("secret").await;
    let channel = channel("secret", &address);
    let sent = command("{\"text\":\"ä\\u0000\"}", LONG);
    let (accept, accepted) = oneshot::channel();
    let answering = tokio::spawn({
        let (channel, sent) = (Arc::clone(&channel), sent.clone());
        async move { channel.forward(&NodeName::trusted("b"), sent, accept).await }
    });
    let (arrived, held) = commands.recv().await.unwrap();
    assert_eq!(arrived, sent);
    held.accepted.send(()).unwrap();
    accepted.await.unwrap();
    held.reply.send(done(8)).unwrap();
    assert_eq!(answering.await.unwrap(), Ok(done(8)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_commands_share_a_connection_and_none_waits_for_another() {
    let (server, address, _, mut commands) = serve("secret").await;
    let channel = channel("secret", &address);
    let asks: Vec<_> = (0..4)
        .map(|_| {
            let channel = Arc::clone(&channel);
            tokio::spawn(async move { forward(&channel, LONG).await })
        })
        .collect();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(commands.recv().await.unwrap().1);
    }
    // A fifth is beyond the bound (R21).
    assert_eq!(forward(&channel, LONG).await, Err(ForwardError::Full));
    for (version, held) in held.into_iter().rev().enumerate() {
        held.reply.send(done(version as u64)).unwrap();
    }
    let mut versions = Vec::new();
    for ask in asks {
        match ask.await.unwrap() {
            Ok(ForwardReply::Done(ForwardedAnswer::Committed { version, .. })) => {
                versions.push(version);
            }
            other => panic!("{other:?}"),
        }
    }
    versions.sort_unstable();
    assert_eq!(versions, [0, 1, 2, 3]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_and_hints_arrive() {
    let (server, address, fake, _commands) = serve("secret").await;
    let channel = channel("secret", &address);
    let b = NodeName::trusted("b");
    let command_id = CommandId(Uuid::now_v7());
    channel.hint_position(&b, PartitionNo(3), 9);
    channel.hint_ownership();
    channel.signal(
        &b,
        vec![Signal {
            command_id,
            stage: Stage::Snapshot,
            function: FunctionInfo {
                kind: FunctionKind::StateEvent,
                context: "c".into(),
                processor: "p".into(),
                name: "n".into(),
            },
            error: None,
        }],
    );
    let told = fake.told(3).await;
    assert_eq!(
        told,
        [
            "3 at 9".to_owned(),
            "ownership".to_owned(),
            format!("SNAPSHOT {command_id}")
        ]
    );
    server.stop().await;
}

#[test]
fn every_message_is_read_as_it_was_written() {
    let reply = ForwardReply::Done(ForwardedAnswer::Failed(
        wow_kernel::error::CommandError::VersionMismatch {
            expected: 1,
            current: 2,
        },
    ));
    let all = [
        Message::Forward(1, Box::new(command("{}", LONG))),
        Message::Accepted(2),
        Message::Reply(3, Box::new(reply)),
        Message::Signals(Vec::new()),
        Message::Position(PartitionNo(4), 5),
        Message::Ownership,
        Message::Ping,
        Message::Pong,
        Message::NotUnderstood(6),
    ];
    for message in all {
        let frame = message.encode().unwrap();
        assert_eq!(Message::decode(&frame).unwrap(), message);
        // Whatever it is cut to, it is an error and nothing worse.
        for length in 0..frame.len() {
            let _ = Message::decode(&frame[..length]);
        }
    }
}
