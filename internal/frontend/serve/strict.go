package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// decode reads the body of a request into v strictly; none is an empty object. What is wrong
// with it is said with the names that v has.
func decode(r *http.Request, v any) error {
	data, err := io.ReadAll(r.Body) // it is in memory already
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad("the body: "+misread(err), "see /openapi.json; "+takes(reflect.TypeOf(v)))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("the body goes on behind its value", "send one JSON object")
	}
	return nil
}

// misread says why a body cannot be read, in the terms of JSON.
func misread(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return "it is no " + e.Value + ", but an object"
		}
		return fmt.Sprintf("%.80q takes no %s", e.Field, e.Value)
	}
	said := strings.TrimPrefix(err.Error(), "json: ")
	if name, ok := strings.CutPrefix(said, "unknown field "); ok {
		return fmt.Sprintf("there is no key %.80s", name)
	}
	return said
}

// takes names the keys of a type.
func takes(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	keys := schema{}
	if t.Kind() == reflect.Struct {
		newSchemas().fields(t, keys, new([]string))
	}
	if len(keys) == 0 {
		return "it takes no keys"
	}
	return "it takes " + strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
}
