//! One file serves one node (R70).

use crate::support::process::refusal;
use crate::support::{Folder, Node};

#[tokio::test]
async fn r70_a_second_node_on_the_same_file_is_refused_and_the_first_goes_on() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let (code, told) = refusal(&folder, &[]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("data/wow.db is in use by another node"),
        "{told}"
    );
    assert!(told.contains(&format!("process {}", node.id())), "{told}");
    node.client().create_account("ann", 1).await;
    node.stop().await;
    // The file is free as soon as its node is gone.
    Node::start(&folder).await.stop().await;
}

#[tokio::test]
async fn a_node_refuses_a_file_that_was_made_for_another() {
    let folder = Folder::new();
    Node::start(&folder).await.stop().await;
    let (code, told) = refusal(&folder, &["log.partitions=32"]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("64 partitions"), "{told}");
    let (code, told) = refusal(&folder, &["context.name=shop"]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("belongs to the context 'example'"), "{told}");
}

#[tokio::test]
async fn a_port_in_use_is_told_with_the_port() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let bind = format!("http.bind={}", node.address());
    let (code, told) = refusal(&Folder::new(), &[&bind]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains(&format!("can't listen at {}", node.address())),
        "{told}"
    );
    node.stop().await;
}
