//! Bad input over a real socket: a clear error with its code, status and field; nothing changes.

mod bodies;
mod headers;
mod ids;
mod protocol;

use serde_json::json;

use crate::support::client::Request;
use crate::support::database::Database;
use crate::support::{Client, Folder, Node};

/// A request that has to be refused.
struct Case {
    what: &'static str,
    request: Request,
    status: u16,
    code: &'static str,
    field: Option<&'static str>,
}

impl Case {
    fn new(what: &'static str, request: Request, (status, code): (u16, &'static str)) -> Self {
        Self {
            what,
            request,
            status,
            code,
            field: None,
        }
    }

    /// The field, header or fact that the first binding error has to name.
    fn naming(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }
}

/// Sends each to a node with one account, and looks at the log after each.
async fn all_are_refused(cases: impl FnOnce(&Client) -> Vec<Case>) {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;
    let database = Database::open(&folder.database()).await;
    for case in cases(&client) {
        let answer = case.request.send().await;
        let told = (answer.status, answer.code().to_owned());
        let wanted = (case.status, case.code.to_owned());
        assert_eq!(told, wanted, "{}: {}", case.what, answer.text);
        let body = answer.refused(case.status, case.code);
        if let Some(field) = case.field {
            let error = &body["bindingErrors"][0];
            assert_eq!(error["name"], field, "{}: {body}", case.what);
            assert_ne!(error["msg"], "", "{}", case.what);
        }
        assert_eq!(database.commits().await, 1, "{} changed it", case.what);
    }
    database.close().await;
    // And it goes on as if nothing had been.
    let lock = client.put("/account/ann/lock_amount", &json!({"amount": 1}));
    assert_eq!(lock.ok().await["aggregateVersion"], 2);
    node.stop().await;
}

/// A command that is in order but for what a test adds.
fn lock(client: &Client) -> Request {
    client.put("/account/ann/lock_amount", &json!({"amount": 1}))
}
