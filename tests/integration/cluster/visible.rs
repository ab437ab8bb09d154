//! What an operator sees of a cluster: members, partitions, and what is not where it should be.

use serde_json::Value;

use super::nodes::Place;
use super::two::settled;
use crate::storage::databases::Database;
use crate::support::wait::until;

/// A command's table as JSON.
async fn table(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let output = place.wow(arguments).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of<'t>(table: &'t [Value], name: &str) -> &'t Value {
    table.iter().find(|row| row["name"] == name).unwrap()
}

#[tokio::test]
async fn r71_members_and_partitions_show_who_owns_what_and_who_should() {
    let database = Database::postgres().await;
    let places = ["n-1", "n-2"].map(|name| Place::new(name, &database, true));
    let (one, two) = (places[0].start().await, places[1].start().await);
    settled(&[&one, &two]).await;
    one.client().create_account("seen", 1).await;
    let members = table(&places[0], &["members", "--json"]).await;
    let owns = |name| of(&members, name)["owns"].as_u64().unwrap();
    assert_eq!(owns("n-1") + owns("n-2"), 64);
    for name in ["n-1", "n-2"] {
        let member = of(&members, name);
        assert_eq!(
            (&member["state"], &member["owns"]),
            (&"live".into(), &member["shouldOwn"])
        );
    }
    let partitions = table(&places[0], &["partitions", "--check", "--json"]).await;
    assert_eq!(partitions.len(), 64);
    let heads: u64 = partitions
        .iter()
        .map(|row| row["head"].as_u64().unwrap())
        .sum();
    assert_eq!(heads, 1, "one account was created");
    // As text, a line for each, under a line that names the columns.
    let text = places[0].wow(&["partitions"]).await;
    assert_eq!(String::from_utf8(text.stdout).unwrap().lines().count(), 65);
    // A killed member's row stays, and its partitions are another's once its lease has run out.
    two.kill().await;
    until("the dead member's lease runs out", async || {
        let members = table(&places[0], &["members", "--json"]).await;
        (of(&members, "n-2")["state"] == "expired").then_some(())
    })
    .await;
    settled(&[&one]).await;
    let output = places[0].wow(&["partitions", "--check"]).await;
    assert!(output.status.success(), "{output:?}");
    one.stop().await;
    // Nobody is left to own them.
    let output = places[0].wow(&["partitions", "--check"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("64 partitions")
    );
}
