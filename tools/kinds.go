package tools

import "encoding/json"

// kind is a tool there is.
type kind struct {
	name, description string
	readOnly          bool
	schema            string
	parse             func(json.RawMessage) (input, error)
}

// object is the schema of an object with the properties and nothing else.
func object(required, properties string) string {
	return `{"type":"object","additionalProperties":false,"required":[` + required + `],"properties":{` + properties + `}}`
}

const pathProperty = `"path":{"type":"string","description":"relative to cwd, or absolute in a granted folder"}`

var kinds = []*kind{
	{"shell", "Runs a command and answers its output and exit code: 124 timed out, 127 not started, 130 cancelled, 128+n signal n. Output over 100000 bytes of a stream is cut.", false,
		object(``, `"script":{"type":"string","description":"run by bash -c; this or argv"},`+
			`"argv":{"type":"array","items":{"type":"string"},"minItems":1,"description":"program and arguments, no shell; this or script"},`+
			`"cwd":{"type":"string","description":"folder to run in, relative to cwd"},`+
			`"timeout_ms":{"type":"integer","minimum":1,"maximum":86400000,"description":"30000 if left out"},`+
			`"allow_network":{"type":"boolean","description":"false: without any network, with a HOME and TMPDIR of its own; true: what the policy gives"}`),
		parser(func() argued { return &shellInput{} })},
	{"file_read", "Reads a text file, at most 100000 bytes of it, from a line on.", true,
		object(`"path"`, pathProperty+`,"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},`+
			`"limit":{"type":"integer","minimum":1,"description":"how many lines"}`),
		parser(func() argued { return &readInput{} })},
	{"file_write", "Writes a whole file, and makes it and its folders where they are missing. The old text or the new one is there at any time; the mode is kept.", false,
		object(`"path","content"`, pathProperty+`,"content":{"type":"string"}`),
		parser(func() argued { return &writeInput{} })},
	{"file_edit", "Replaces old_string, which must be in the file exactly once, or everywhere with replace_all. Line ends of the file are kept.", false,
		object(`"path","old_string","new_string"`, pathProperty+`,"old_string":{"type":"string","minLength":1},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}`),
		parser(func() argued { return &editInput{} })},
	{"grep", "Searches text files for a regular expression (RE2) and prints path:line:text. Leaves out .git, node_modules, binary files and links that leave.", true,
		object(`"pattern"`, `"pattern":{"type":"string"},"path":{"type":"string","description":"file or folder, cwd if left out"},`+
			`"glob":{"type":"string","description":"only these files, such as *.go or src/**"},"ignore_case":{"type":"boolean"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"how many lines, 200 if left out"}`),
		parser(func() argued { return &grepInput{} })},
	{"glob", "Prints the paths that a pattern matches, folders with a slash: * ? [a-z] in a name, ** for any folders, {a,b}. Leaves out .git, node_modules and links that leave.", true,
		object(`"pattern"`, `"pattern":{"type":"string"},"path":{"type":"string","description":"folder where the pattern starts, cwd if left out"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"how many paths, 1000 if left out"}`),
		parser(func() argued { return &globInput{} })},
}

func find(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}
