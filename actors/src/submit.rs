//! Submit: the message by which code that speaks actix sends commands.
//!
//! Its recipient is the admission actor; what follows is what follows any submission.

use std::time::Duration;

use actix::Message;
use wow_kernel::access::Principal;
use wow_kernel::error::CommandError;
use wow_kernel::id::Version;
use wow_kernel::model::Command;
use wow_kernel::result::CommandResult;
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

/// Submits a command: `Submit::new(Lend { reader }).aggregate_id("moby-dick")`.
///
/// Each verb says one thing of the request, as those of [`Submission`] do; what none says is as
/// for any request: an id from the command itself, a request id of its own, the wait's default.
#[derive(Debug, Message)]
#[rtype(result = "Result<CommandResult, CommandError>")]
#[must_use = "a message does nothing until it is sent"]
pub struct Submit(pub Submission);

impl From<Submission> for Submit {
    fn from(submission: Submission) -> Self {
        Self(submission)
    }
}

impl Submit {
    /// A command of a registered type.
    pub fn new<C: Command>(command: C) -> Self {
        Self(Submission::typed(command))
    }

    /// Names the aggregate.
    pub fn aggregate_id(self, id: impl Into<String>) -> Self {
        Self(self.0.aggregate_id(id))
    }

    /// Names the tenant.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self(self.0.tenant(tenant))
    }

    /// Names the owner.
    pub fn owner(self, owner: impl Into<String>) -> Self {
        Self(self.0.owner(owner))
    }

    /// Names the space.
    pub fn space(self, space: impl Into<String>) -> Self {
        Self(self.0.space(space))
    }

    /// Names the request: sent again under this name, it commits nothing new.
    pub fn request_id(self, id: impl Into<String>) -> Self {
        Self(self.0.request_id(id))
    }

    /// Expects a version (R53).
    pub fn expected_version(self, version: Version) -> Self {
        Self(self.0.expected_version(version))
    }

    /// Waits for a stage.
    pub fn wait(self, stage: Stage) -> Self {
        Self(self.0.wait(stage))
    }

    /// Waits at most this long.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(self.0.timeout(timeout))
    }

    /// Sends as this caller.
    pub fn principal(self, principal: Principal) -> Self {
        Self(self.0.principal(principal))
    }

    /// Keeps a header with the commit.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self(self.0.header(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_says_what_the_submissions_own_says() {
        fn json() -> Submission {
            Submission::json("account", "prepare", "{}")
        }
        let submit = Submit::from(json())
            .aggregate_id("a")
            .tenant("t")
            .owner("o")
            .space("s")
            .request_id("r")
            .expected_version(3)
            .wait(Stage::Processed)
            .timeout(Duration::from_secs(7))
            .principal(Principal::service("desk"))
            .header("channel", "desk");
        let submission = json()
            .aggregate_id("a")
            .tenant("t")
            .owner("o")
            .space("s")
            .request_id("r")
            .expected_version(3)
            .wait(Stage::Processed)
            .timeout(Duration::from_secs(7))
            .principal(Principal::service("desk"))
            .header("channel", "desk");
        assert_eq!(format!("{:?}", submit.0), format!("{submission:?}"));
    }
}
