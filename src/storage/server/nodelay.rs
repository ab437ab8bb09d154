//! `TCP_NODELAY` on the connections to a server.
//!
//! The driver (sqlx 0.9) connects without it. Nagle's algorithm then holds the end of each batch
//! back until the server acknowledges what came before, which a server puts off for 40 ms: a
//! writer of 25 000 commits a second was seen to write 1 400. The driver shows nobody its socket,
//! so this looks for it among the process's own, by the port at its other end. See
//! docs/decisions/0011.

/// Sends without delay from now on, on every connection of this process to a port. Where sockets
/// can't be listed, nothing happens: connections are slower then, and no less right.
pub(super) async fn set(port: u16) {
    let set = tokio::task::spawn_blocking(move || sockets::send_at_once(port)).await;
    match set {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, port, "connections may delay what they send"),
        Err(error) => tracing::debug!(%error, port, "connections may delay what they send"),
    }
}

#[cfg(target_os = "linux")]
mod sockets {
    use std::fs;
    use std::io;
    use std::os::fd::{BorrowedFd, RawFd};

    use socket2::SockRef;

    /// The open files of this process; each name is a number.
    const OWN_FILES: &str = "/proc/self/fd";

    pub(super) fn send_at_once(port: u16) -> io::Result<()> {
        for entry in fs::read_dir(OWN_FILES)? {
            let entry = entry?;
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let is_socket = fs::read_link(entry.path()).is_ok_and(|target| {
                target
                    .as_os_str()
                    .as_encoded_bytes()
                    .starts_with(b"socket:")
            });
            if let Some(number) = number.filter(|_| is_socket) {
                send_at_once_on(number, port);
            }
        }
        Ok(())
    }

    #[expect(
        unsafe_code,
        reason = "the driver owns the descriptor, and lends it to nobody"
    )]
    fn send_at_once_on(number: RawFd, port: u16) {
        // SAFETY: the descriptor was open a moment ago. Should it have been closed since, or be
        // another's by now, the calls below fail, or find another peer, or set an option that
        // changes when bytes leave and nothing else; it is neither read, written nor closed here.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let socket = SockRef::from(&descriptor);
        let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket());
        if peer.is_some_and(|peer| peer.port() == port) {
            // It may have been closed meanwhile.
            let _ = socket.set_tcp_nodelay(true);
        }
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};

        use super::*;

        #[test]
        fn a_connection_to_the_port_sends_at_once_and_no_other() {
            let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
            let ports = servers
                .each_ref()
                .map(|server| server.local_addr().unwrap().port());
            let connections = ports.map(|port| TcpStream::connect(("127.0.0.1", port)).unwrap());
            assert!(!connections[0].nodelay().unwrap());
            send_at_once(ports[0]).unwrap();
            assert!(connections[0].nodelay().unwrap());
            assert!(!connections[1].nodelay().unwrap());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod sockets {
    use std::io;

    pub(super) fn send_at_once(_port: u16) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
