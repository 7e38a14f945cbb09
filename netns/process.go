package netns

// Ended is closed when the command and everything that it has left behind has
// ended, on macOS as far as that can be found. If the session ends before, it
// never is.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Code is the command's status after its end, 128+n if signal n ended it.
func (p *Process) Code() int {
	if p.status.Signaled() {
		return 128 + int(p.status.Signal())
	}
	return p.status.ExitStatus()
}
