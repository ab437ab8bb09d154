//! The channel in TLS: both sides show a certificate of the cluster's authority (R76).

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use wow_kernel::ports::ForwardError;

use super::super::{ClusterSettings, ClusterTls, TlsError, TlsFiles};
use super::{LONG, channel, channel_with, done, forward, serve, serve_with, settings};

/// An authority, and the files of nodes that it vouches for.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    fn authority(&self) -> std::path::PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A node's files, for a host; it trusts those whom `trusted` vouches for.
    fn files(&self, host: &str, trusted: &Self) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |name: &str, text: String| {
            let path = self.folder.path().join(format!("{host}-{name}.pem"));
            fs::write(&path, text).unwrap();
            path
        };
        TlsFiles {
            certificate: write("certificate", certificate.pem()),
            key: write("key", key.serialize_pem()),
            authority: trusted.authority(),
        }
    }

    fn settings(&self, node: &str, host: &str, trusted: &Self) -> Arc<ClusterSettings> {
        let tls = ClusterTls::read(&self.files(host, trusted)).unwrap();
        let settings = (*settings(node, "secret")).clone();
        Arc::new(ClusterSettings {
            tls: Some(tls),
            ..settings
        })
    }
}

async fn is_not_sent(channel: &super::super::ClusterChannel) {
    let answer = forward(channel, LONG).await;
    assert!(
        matches!(answer, Err(ForwardError::NotSent(_))),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r76_nodes_of_one_authority_speak_in_tls() {
    let ours = Authority::new();
    let (server, address, _, mut commands) =
        serve_with(ours.settings("b", "127.0.0.1", &ours)).await;
    let channel = channel_with(ours.settings("a", "127.0.0.1", &ours), &address);
    let asking = tokio::spawn(async move { forward(&channel, LONG).await });
    let (_, held) = commands.recv().await.unwrap();
    held.reply.send(done(8)).unwrap();
    assert_eq!(asking.await.unwrap(), Ok(done(8)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r76_a_certificate_of_another_authority_or_host_is_refused_before_anything_is_sent() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (server, address, _, mut commands) =
        serve_with(ours.settings("b", "127.0.0.1", &ours)).await;
    // A caller whom another authority vouches for; one that trusts another; one without TLS.
    is_not_sent(&channel_with(
        theirs.settings("a", "127.0.0.1", &ours),
        &address,
    ))
    .await;
    is_not_sent(&channel_with(
        ours.settings("a", "127.0.0.1", &theirs),
        &address,
    ))
    .await;
    is_not_sent(&channel("secret", &address)).await;
    server.stop().await;
    assert!(commands.recv().await.is_none());
    // A server whose certificate was made out to another host.
    let (server, address, _, mut commands) =
        serve_with(ours.settings("b", "elsewhere.internal", &ours)).await;
    is_not_sent(&channel_with(
        ours.settings("a", "127.0.0.1", &ours),
        &address,
    ))
    .await;
    server.stop().await;
    assert!(commands.recv().await.is_none());
    // A caller in TLS of a server that has none.
    let (server, address, _, mut commands) = serve("secret").await;
    is_not_sent(&channel_with(
        ours.settings("a", "127.0.0.1", &ours),
        &address,
    ))
    .await;
    server.stop().await;
    assert!(commands.recv().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn r76_nothing_is_said_to_a_caller_without_a_certificate() {
    let ours = Authority::new();
    let (server, address, _, _commands) = serve_with(ours.settings("b", "127.0.0.1", &ours)).await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    // Silent: it is closed once it has taken too long to begin.
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    assert!(said.is_empty());
    server.stop().await;
}

#[test]
fn files_that_do_not_fit_are_named() {
    let ours = Authority::new();
    let files = ours.files("127.0.0.1", &ours);
    let named = |files: &TlsFiles, path: &Path| match ClusterTls::read(files) {
        Err(TlsError::File { file, .. }) => assert_eq!(file, path),
        other => panic!("{other:?}"),
    };
    let missing = ours.folder.path().join("missing.pem");
    for (files, path) in [
        (
            TlsFiles {
                certificate: missing.clone(),
                ..files.clone()
            },
            &missing,
        ),
        (
            TlsFiles {
                key: missing.clone(),
                ..files.clone()
            },
            &missing,
        ),
        (
            TlsFiles {
                authority: missing.clone(),
                ..files.clone()
            },
            &missing,
        ),
        // A key is no certificate.
        (
            TlsFiles {
                certificate: files.key.clone(),
                ..files.clone()
            },
            &files.key,
        ),
    ] {
        named(&files, path);
    }
    let other = ours.files("other.internal", &ours);
    let mixed = TlsFiles {
        key: other.key,
        ..files
    };
    assert!(matches!(ClusterTls::read(&mixed), Err(TlsError::Unfit(_))));
}
