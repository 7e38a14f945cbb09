package netns

// On macOS there are no namespaces: what a sandbox may do is a profile
// (netns/seatbelt), and the kernel holds everything started under
// /usr/bin/sandbox-exec to it.
//
//	egressd   on the host: writes the profile, serves the proxy on a loopback port, follows the program
//	keeper    on the host: clears away if egressd dies before it could
//	launcher  under the profile: limits, then becomes the program
//	probe     under the profile: looks from inside, before the program starts
//
// A Session has the methods that it has on Linux. Nothing is captured: a client
// that honours no proxy variables is refused by the kernel.
