package netns

// Unavailable is why no sandbox can be made. Nothing runs then.
type Unavailable struct {
	Problem string // what is missing
	Advice  string // what to do
	Err     error  // the kernel's word for it, if there is one
}

func (e *Unavailable) Error() string {
	text := "making a sandbox: " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Unavailable) Unwrap() error { return e.Err }

// Reason is the error's name in records and messages.
func (e *Unavailable) Reason() string { return "no_sandbox_available" }

// Hint is what to do about it.
func (e *Unavailable) Hint() string { return e.Advice }

// NotStarted is a program that is not there or cannot be executed.
type NotStarted struct {
	Problem string
	Code    int // exit status that says so: 127 not there, 126 not executable
}

func (e *NotStarted) Error() string { return "starting the program: " + e.Problem }
