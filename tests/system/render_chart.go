// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// render_chart CHART VALUES NAMESPACE: what `helm template` prints of a chart whose templates use few functions.
// VALUES is a JSON object. What is replaced must be there.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

type files string

func (dir files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(string(dir), name))
	return string(text), err
}

func replace(old, new, text string) (string, error) {
	if !strings.Contains(text, old) {
		return "", fmt.Errorf("no %q", old)
	}
	return strings.ReplaceAll(text, old, new), nil
}

func main() {
	var values any
	functions := template.FuncMap{
		"replace":   replace,
		"contains":  func(part, text string) bool { return strings.Contains(text, part) },
		"splitList": func(sep, text string) []string { return strings.Split(text, sep) },
	}
	err := json.Unmarshal([]byte(os.Args[2]), &values)
	if err == nil {
		all := template.New("ibscope.yaml").Option("missingkey=error").Funcs(functions)
		all, err = all.ParseGlob(filepath.Join(os.Args[1], "templates", "*"))
		if err == nil {
			err = all.Execute(os.Stdout, map[string]any{"Values": values, "Files": files(os.Args[1]),
				"Release": map[string]string{"Namespace": os.Args[3], "Name": "ibscope"}})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
