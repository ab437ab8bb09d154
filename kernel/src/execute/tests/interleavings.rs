//! Random runs: several nodes decide over one faulty store, in an order that a seed draws.
//!
//! Each client sends its requests, some of them several times, to lanes of random nodes, until it
//! has an answer that is no reason to try again. Calls to storage are lost, refused and delayed
//! at random, so that the nodes' commands interleave in every way. At the end the log is the judge.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::task::Wake;

use parking_lot::Mutex;
use tokio::sync::Mutex as Lane;

use super::*;
use crate::faults::Rates;
use crate::id::{AggregateId, CommandId, RequestId};
use crate::ports::{Probe, Random};

/// How many runs there are.
const SEEDS: u64 = 250;

const NODES: usize = 3;
const JARS: usize = 2;
const CLIENTS: usize = 6;
const REQUESTS: usize = 8;

/// The calls that fail at random.
const FAILING: [Call; 5] = [
    Call::Append,
    Call::Probe,
    Call::FindRequest,
    Call::LoadHistory,
    Call::ReadAggregate,
];

/// One run: the nodes, their lanes, and what the clients were told.
struct Run {
    nodes: Vec<Node>,
    lanes: Vec<Vec<Lane<LaneState>>>,
    dice: SeededRandom,
    clock: Arc<ManualClock>,
    answers: Mutex<Vec<Answer>>,
}

/// What a command was answered.
struct Answer {
    request_id: RequestId,
    command_id: CommandId,
    /// What the log held when the lane began with it.
    before: Probe,
    told: Told,
}

enum Told {
    /// That its request is committed: to which jar, as which version, with which result.
    Committed(AggregateKey, Version, Option<String>),
    /// That nothing changes, for good; on a state of at least this version.
    Refused(Version),
    /// That nothing was committed, and to try again.
    Failed,
    /// Nothing certain.
    Unknown,
}

impl Run {
    fn new(seed: u64) -> Self {
        let first = Node::new(AccessMode::Open);
        let (store, clock) = (Arc::clone(&first.store), Arc::clone(&first.clock));
        let dice = SeededRandom::new(seed, clock.clone());
        let share = |dice: &SeededRandom| dice.bits() as f64 / u64::MAX as f64 * 0.1;
        let nodes: Vec<_> = (1..=NODES as u64)
            .map(|number| {
                let mut node = Node::over(&store, &clock, AccessMode::Open, seed * 100 + number);
                let rates = Rates {
                    refuse: share(&dice),
                    busy: share(&dice),
                    lose_answer: share(&dice),
                    lose_call: share(&dice),
                    delay: share(&dice) * 3.0,
                    delay_answer: share(&dice) * 3.0,
                    delay_max: Duration::from_millis(50),
                };
                node.faults.at_random(dice.bits(), &FAILING, &rates);
                node.kernel.limits.append_timeout = Duration::from_secs(2);
                node.kernel.limits.conflict_retries = 3;
                node.kernel.loader.recent_requests = [0, 3, 256][dice.bits() as usize % 3];
                node
            })
            .collect();
        let lanes = nodes
            .iter()
            .map(|_| (0..JARS).map(|_| Lane::default()).collect())
            .collect();
        Self {
            nodes,
            lanes,
            dice,
            clock,
            answers: Mutex::default(),
        }
    }

    fn roll(&self, sides: usize) -> usize {
        (self.dice.bits() % sides as u64) as usize
    }

    /// Any request but a creation without an id, for a jar.
    fn request(&self, jar: usize) -> Submission {
        let amount = self.roll(20) as i64;
        let how = match self.roll(8) {
            0..=2 => How::Take(amount),
            3 => How::Nothing,
            4 => How::Reject,
            5 => How::Panic,
            6 => How::Wait(self.roll(30) as u64),
            _ => How::Add(amount),
        };
        let request = match self.roll(5) {
            0 => Submission::typed(Put { amount }),
            1 | 2 => Submission::typed(Act { how }),
            _ => Submission::typed(ActPurely { how }),
        };
        let request = match self.roll(10) {
            0 => request.expected_version(self.roll(30) as Version),
            _ => request,
        };
        request.aggregate_id(format!("j-{jar}"))
    }

    /// Sends requests, each until its answer is final, and some of them once more.
    async fn client(&self, number: usize) {
        for request in 0..REQUESTS {
            let jar = self.roll(JARS);
            let mut submission = self.request(jar);
            let is_named = self.roll(4) > 0;
            if is_named {
                submission = submission.request_id(format!("r-{number}-{request}"));
            }
            for _ in 0..=self.roll(3) {
                // A request without a name can't be retried.
                let tries = if is_named { 30 } else { 1 };
                for _ in 0..tries {
                    if self.send(submission.clone(), jar).await {
                        break;
                    }
                }
            }
        }
    }

    /// Sends a request to a lane of some node; `false` where it is to be tried again.
    async fn send(&self, submission: Submission, jar: usize) -> bool {
        let number = self.roll(NODES);
        let node = &self.nodes[number];
        self.clock
            .sleep(Duration::from_micros(self.dice.bits() % 20_000))
            .await;
        let command = node.admission.admit(submission).await.unwrap();
        let mut lane = self.lanes[number][jar].lock().await;
        if self.roll(6) == 0 {
            // As after a hand-over, or for want of memory.
            lane.cached = None;
        }
        let (key, request_id) = (command.key(), Some(&command.request_id));
        let before = node.store.probe(key, request_id).await.unwrap();
        let executed = node.kernel.execute(&mut lane, &command).await;
        if self.roll(4) == 0 {
            self.save_snapshot(node, &lane, command.key()).await;
        }
        drop(lane);
        let is_final = !matches!(&executed, Executed::Failed(error) if error.is_retryable());
        self.answers.lock().push(Answer {
            request_id: command.request_id.clone(),
            command_id: command.command_id,
            before,
            told: told(executed, &command),
        });
        is_final
    }

    async fn save_snapshot(&self, node: &Node, lane: &LaneState, key: &AggregateKey) {
        let Some(loaded) = lane.cached.as_ref().filter(|loaded| loaded.version > 0) else {
            return;
        };
        let is_written = loaded.version.is_multiple_of(crate::recent::WRITTEN_EVERY);
        let snapshot = StoredSnapshot {
            key: key.clone(),
            version: loaded.version,
            partition: crate::partition::partition_of(key, 64),
            position: loaded.position,
            facts: (*loaded.facts).clone(),
            state: node.definition().encode_state(&loaded.state).unwrap(),
            state_revision: node.definition().spec.state_revision,
            recent_requests: is_written.then(|| loaded.recent.to_json().into()),
            snapshot_time: 0,
        };
        node.store.save(vec![snapshot]).await.unwrap();
    }

    /// How often this run met what it is for: conflicts, unknown outcomes, retries answered.
    fn met(&self) -> [usize; 3] {
        let of = |counter: fn(&Observed) -> &AtomicUsize| -> usize {
            let counts = self.nodes.iter().map(|node| counter(&node.observed));
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let answers = self.answers.lock();
        let committed: Vec<_> = answers
            .iter()
            .filter(|answer| matches!(answer.told, Told::Committed(..)))
            .map(|answer| &answer.request_id)
            .collect();
        let requests: std::collections::HashSet<_> = committed.iter().collect();
        [
            of(|observed| &observed.conflicts),
            of(|observed| &observed.unknowns),
            committed.len() - requests.len(),
        ]
    }

    fn key(number: usize) -> AggregateKey {
        AggregateKey {
            id: AggregateId::trusted(format!("j-{number}")),
            ..jar()
        }
    }

    fn log(&self, key: &AggregateKey) -> Vec<Commit> {
        let store = &self.nodes[0].store;
        finish(
            &self.clock,
            store.read_aggregate(key, 0, Version::MAX, 10_000),
        )
        .unwrap()
    }

    /// Holds the whole run to its log.
    fn check(&self) {
        let mut by_request = HashMap::new();
        let mut by_command = HashMap::new();
        for number in 0..JARS {
            let log = self.log(&Self::key(number));
            for (commit, expected) in log.iter().zip(1..) {
                assert_eq!(commit.version, expected, "versions are contiguous");
                let twice = by_request.insert(commit.request_id.clone(), commit.clone());
                assert!(twice.is_none(), "{} committed twice", commit.request_id);
                by_command.insert(commit.command_id, commit.clone());
            }
            self.check_states(number, &log);
        }
        let answers = self.answers.lock();
        assert!(answers.len() >= CLIENTS * REQUESTS);
        for answer in answers.iter() {
            let (request_id, command_id) = (&answer.request_id, &answer.command_id);
            match &answer.told {
                // All answers of one request are alike: what the log holds of it.
                Told::Committed(key, version, result) => {
                    let commit = by_request.get(request_id);
                    let commit = commit.unwrap_or_else(|| panic!("{request_id} is lost"));
                    assert_eq!((&commit.key, commit.version), (key, *version));
                    let held = commit.result.as_ref().map(|result| result.get().to_owned());
                    assert_eq!(&held, result, "the result of {request_id}");
                }
                // A refusal is reached on a state that was the newest while the command ran, and
                // never given to the retry of what has committed.
                Told::Refused(version) => {
                    assert!(
                        !by_command.contains_key(command_id),
                        "{request_id} committed"
                    );
                    assert!(
                        answer.before.request.is_none(),
                        "{request_id} had committed"
                    );
                    assert!(*version >= answer.before.newest_version, "an old state");
                }
                Told::Failed => {
                    assert!(
                        !by_command.contains_key(command_id),
                        "{request_id} committed"
                    );
                }
                Told::Unknown => {}
            }
        }
    }

    /// What the lanes hold, and what a cold lane loads, is what the log gives.
    fn check_states(&self, number: usize, log: &[Commit]) {
        let node = &self.nodes[0];
        let key = Self::key(number);
        let mut states = vec![Loaded::initial(node.definition(), &key, 0).unwrap()];
        for commit in log {
            let before = states.last().unwrap().clone();
            let after = before.apply(node.definition(), commit).unwrap();
            assert!(state_of(&after).total >= 0, "decided on an old state");
            states.push(after);
        }
        let loader = Loader {
            history: node.store.clone(),
            log: node.store.clone(),
            ..node.kernel.loader.clone()
        };
        let loaded = finish(&self.clock, loader.load(node.definition(), &key)).unwrap();
        assert_eq!(loaded.version, log.len() as Version);
        let held = self.lanes.iter().filter_map(|lanes| {
            let lane = lanes[number].try_lock().expect("nobody runs any more");
            lane.cached.clone()
        });
        for held in held.chain([Box::new(loaded)]) {
            let replayed = &states[held.version as usize];
            assert_eq!(state_of(&held), state_of(replayed), "at {}", held.version);
            assert_eq!(held.facts, replayed.facts, "at {}", held.version);
            assert_eq!(held.position, replayed.position, "at {}", held.version);
        }
    }
}

fn told(executed: Executed, command: &BuiltCommand) -> Told {
    let text = |result: Option<Arc<RawValue>>| result.map(|result| result.get().to_owned());
    match executed {
        Executed::Committed(view) => {
            let commit = &view.commit;
            assert_eq!(commit.command_id, command.command_id);
            let result = text(commit.result.clone());
            Told::Committed(commit.key.clone(), commit.version, result)
        }
        Executed::Known {
            record,
            key,
            duplicate,
        } => {
            assert_eq!(duplicate, record.command_id != command.command_id);
            Told::Committed(key, record.version, text(record.result))
        }
        Executed::Failed(CommandError::OutcomeUnknown) => Told::Unknown,
        Executed::Failed(CommandError::Internal) => panic!("{command:?} met a fault of the node's"),
        Executed::Unchanged { version, .. } => Told::Refused(version),
        Executed::Failed(CommandError::VersionMismatch { current, .. }) => Told::Refused(current),
        Executed::Failed(error) if error.is_retryable() => Told::Failed,
        Executed::Failed(_) => Told::Refused(Version::MAX),
    }
}

/// Notes that its task can go on.
struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls tasks in an order that dice draw; when none can go on, time does.
fn interleave<'a>(
    clock: &ManualClock,
    roll: impl Fn(usize) -> usize,
    tasks: impl IntoIterator<Item = Pin<Box<dyn Future<Output = ()> + 'a>>>,
) {
    let mut tasks: Vec<_> = tasks
        .into_iter()
        .map(|task| (task, Arc::new(Ready(AtomicBool::new(true)))))
        .collect();
    while !tasks.is_empty() {
        let ready: Vec<_> = (0..tasks.len())
            .filter(|index| tasks[*index].1.0.load(Ordering::Acquire))
            .collect();
        if ready.is_empty() {
            clock.advance(clock.next_wake().expect("nobody can ever go on"));
            continue;
        }
        let index = ready[roll(ready.len())];
        let (task, ready) = &mut tasks[index];
        ready.0.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(ready));
        if task
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            drop(tasks.swap_remove(index));
        }
    }
}

#[test]
fn r44_whatever_the_nodes_do_a_request_commits_once_and_is_told_so() {
    let mut met = [0; 3];
    for seed in 0..SEEDS {
        let held = std::panic::catch_unwind(|| {
            let run = Run::new(seed);
            let clients = (0..CLIENTS).map(|number| Box::pin(run.client(number)) as Pin<Box<_>>);
            interleave(&run.clock, |sides| run.roll(sides), clients);
            run.check();
            run.met()
        });
        match held {
            Ok(more) => met
                .iter_mut()
                .zip(more)
                .for_each(|(met, more)| *met += more),
            Err(panic) => {
                eprintln!("the run with seed {seed} failed");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(
        met.iter().all(|met| *met > SEEDS as usize),
        "the runs met too little: {met:?}"
    );
}
