//! Commands that a command function sends: as its caller, for its identity, in its chain.

use async_trait::async_trait;
use parking_lot::Mutex;

use super::*;
use crate::result::CommandResult;
use crate::saga::DEPTH_HEADER;

/// Keeps what is sent, and is too busy to run it.
#[derive(Default)]
struct Sent(Mutex<Vec<Submission>>);

#[async_trait]
impl CommandSender for Sent {
    async fn send(&self, submission: Submission) -> Result<CommandResult, CommandError> {
        self.0.lock().push(submission);
        Err(CommandError::Busy {
            bound: crate::error::Bound::InFlight,
        })
    }
}

/// Runs a command that sends, and gives what it sent, admitted.
fn sent_by(command: Submission) -> Result<Arc<BuiltCommand>, CommandError> {
    let mut node = Node::with_jar();
    let sent = Arc::new(Sent::default());
    let sender: Arc<dyn CommandSender> = sent.clone();
    assert!(node.kernel.sender.set(sender).is_ok(), "set once");
    assert_eq!(code(node.run(command)), "jar.unsent");
    let submission = sent.0.lock().pop().unwrap();
    finish(&node.clock, node.admission.admit(submission))
}

fn elsewhere(id: &str) -> Submission {
    Submission::typed(Put { amount: 1 }).aggregate_id(id)
}

#[test]
fn r30_a_nested_command_follows_the_one_that_sends_it() {
    let command = act(How::Send("k".into()))
        .principal(user("ann"))
        .header("traceparent", "00-1-2-01")
        .header("other", "x");
    let nested = sent_by(command).unwrap();
    assert_eq!(nested.key().id.as_str(), "k");
    assert_eq!(nested.principal, user("ann"));
    assert_eq!(*nested.chain, [jar()]);
    assert_eq!(nested.wait.stage, crate::wait::Stage::Processed);
    let headers: Vec<_> = nested.headers.keys().map(String::as_str).collect();
    assert_eq!(headers, ["traceparent"], "its trace goes on");
    assert!(nested.request_id_made);
}

#[test]
fn r30_a_command_to_its_own_aggregate_is_refused() {
    let error = sent_by(act(How::Send("j".into()))).unwrap_err();
    assert_eq!(error.code(), "wow.command.reentrant");
}

#[test]
fn r83_the_depth_of_sagas_is_counted_through_command_functions() {
    let mut cause = (*Node::with_jar().build(act(How::Nothing))).clone();
    assert!(
        !elsewhere("k")
            .follows(&cause)
            .headers
            .contains_key(DEPTH_HEADER)
    );
    cause.headers.insert(DEPTH_HEADER.into(), "7".into());
    let nested = elsewhere("k").header(DEPTH_HEADER, "0").follows(&cause);
    assert_eq!(nested.headers[DEPTH_HEADER], "7");
    let node = Node::new(AccessMode::Open);
    let built = node.build(nested);
    assert_eq!(built.headers[DEPTH_HEADER], "7", "admission takes it");
}

#[test]
fn a_function_of_a_node_that_cant_send_is_told_so() {
    let mut node = Node::with_jar();
    assert_eq!(code(node.run(act(How::Send("k".into())))), "jar.unsent");
}
