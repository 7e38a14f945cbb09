"""get.py BUNDLE PORT HOST...: a handshake with 127.0.0.1:PORT for each HOST,
as strict as Python 3.13 is. HOST may be "-": no SNI, and no name checked."""
import socket, ssl, sys

bundle, port = sys.argv[1], int(sys.argv[2])
for host in sys.argv[3:]:
    c = ssl.create_default_context(cafile=bundle)
    c.verify_flags |= ssl.VERIFY_X509_STRICT
    if host == "-":
        c.check_hostname = False
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with c.wrap_socket(plain, server_hostname=None if host == "-" else host) as s:
            assert s.getpeercert()["subject"] == (), s.getpeercert()
            print("ok", host)
