//! The bytes below the channel: a TCP connection, with TLS where this cluster has it.
//!
//! Both sides show a certificate, and each must be signed by the cluster's own authority; the
//! caller's side also asks that it was made out to the host that it calls. The token is shown
//! all the same: a certificate says which machine speaks, the token that it may.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, Join, join, split};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// One half of a connection, whatever is below.
pub(super) type Reading = Box<dyn AsyncRead + Send + Unpin>;

/// The other half.
pub(super) type Writing = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection, whatever is below.
pub(super) type Wire = Join<Reading, Writing>;

/// The files of a node's TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, and what is between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that signs the certificates of all nodes.
    pub authority: PathBuf,
}

/// Why the files can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("{} can't be read: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: pem::Error,
    },
    /// They don't fit together.
    #[error("the certificates of the cluster channel can't be used: {0}")]
    Unfit(String),
}

/// A node's TLS, both ways.
#[derive(Clone)]
pub struct ClusterTls {
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

impl std::fmt::Debug for ClusterTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterTls(…)")
    }
}

impl ClusterTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(unread(&files.key))?;
        let mut roots = RootCertStore::empty();
        for root in certificates(&files.authority)? {
            roots.add(root).map_err(unfit)?;
        }
        let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
        let versions = &[&rustls::version::TLS13];
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(unfit)?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(unfit)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(unfit)?
            .with_client_cert_verifier(verifier.build().map_err(unfit)?)
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: TlsAcceptor::from(Arc::new(server)),
        })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(unread(file))?;
    match certificates.is_empty() {
        true => Err(unread(file)(pem::Error::NoItemsFound)),
        false => Ok(certificates),
    }
}

fn unread(file: &Path) -> impl Fn(pem::Error) -> TlsError {
    move |reason| TlsError::File {
        file: file.to_owned(),
        reason,
    }
}

fn unfit(error: impl ToString) -> TlsError {
    TlsError::Unfit(error.to_string())
}

/// Calls a node at `host:port`.
///
/// # Errors
/// As the system, or the other side's certificate, has it.
pub(super) async fn connect(address: &str, tls: Option<&ClusterTls>) -> io::Result<Wire> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(plain(stream));
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let (reading, writing) = split(tls.connector.connect(name, stream).await?);
    Ok(join(Box::new(reading), Box::new(writing)))
}

/// Takes a caller's connection.
///
/// # Errors
/// As the system, or the caller's certificate, has it.
pub(super) async fn accept(stream: TcpStream, tls: Option<&ClusterTls>) -> io::Result<Wire> {
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(plain(stream));
    };
    let (reading, writing) = split(tls.acceptor.accept(stream).await?);
    Ok(join(Box::new(reading), Box::new(writing)))
}

fn plain(stream: TcpStream) -> Wire {
    let (reading, writing) = stream.into_split();
    join(Box::new(reading), Box::new(writing))
}
