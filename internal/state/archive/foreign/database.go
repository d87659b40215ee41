package foreign

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// InDatabase begins the path of a session that is not a file but stands in
// [Config.Database]; its ID follows.
const InDatabase = "opencode.db#"

// maxAsking is how long one question to a database may take: a hostile one can make
// any of them endless.
const maxAsking = time.Minute

// ask runs f on the database, which is opened for reading alone. It may be in use:
// then what it says is what was written last.
func (c Config) ask(f func(ctx context.Context, db *sql.DB) error) error {
	info, err := os.Lstat(c.Database)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", filepath.Base(c.Database))
	}
	if err != nil {
		return err
	}
	name := filepath.ToSlash(c.Database)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // of a drive
	}
	address := url.URL{Scheme: "file", Path: name, RawQuery: "mode=ro&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=busy_timeout(2000)"}
	if wal, err := os.Lstat(c.Database + "-wal"); err != nil || wal.Size() == 0 {
		address.RawQuery += "&immutable=1" // nobody writes it: no files are made beside it
	}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxAsking)
	defer cancel()
	return errors.Join(f(ctx, db), db.Close())
}

// sessionColumns are what is read of a session; versions differ in the others.
const sessionColumns = "id, coalesce(parent_id, ''), coalesce(title, ''), coalesce(directory, ''), coalesce(time_created, 0), coalesce(time_updated, 0)"

// sessionRow reads a row of sessionColumns as the file of a session says it.
func sessionRow(scan func(...any) error) (fields, error) {
	var id, parent, title, directory string
	var created, updated int64
	if err := scan(&id, &parent, &title, &directory, &created, &updated); err != nil {
		return nil, err
	}
	info := fields{}
	for name, v := range map[string]string{"id": id, "parentID": parent, "title": title, "directory": directory} {
		info[name], _ = json.Marshal(v) // a string always encodes
	}
	info["time"] = json.RawMessage(`{"created":` + strconv.FormatInt(created, 10) + `,"updated":` + strconv.FormatInt(updated, 10) + `}`)
	return info, nil
}

// listDatabase lists the newest sessions of the database, without those of
// sub-agents.
func (c Config) listDatabase() (found []Listed, err error) {
	err = c.ask(func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT "+sessionColumns+" FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC LIMIT ?", maxListed)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			info, err := sessionRow(rows.Scan)
			if err != nil {
				return err
			}
			l, ok := listedOf(Listed{Source: OpenCode, Path: InDatabase + info.str("id")}, info)
			if ok {
				found = append(found, l)
			}
		}
		return rows.Err()
	})
	return found, err
}

// openRow reads a session that stands in the database.
func (c Config) openRow(path string) (Session, error) {
	id := strings.TrimPrefix(path, InDatabase)
	b := &builder{tool: c.Tool, notes: map[string]note{}, s: Session{Listed: Listed{Source: OpenCode, Path: path}}}
	var info fields
	var list []exported
	err := c.ask(func(ctx context.Context, db *sql.DB) error {
		var err error
		if info, err = sessionRow(db.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM session WHERE id = ?", id).Scan); err != nil {
			return err
		}
		var revert sql.NullString // the first versions have none
		if db.QueryRowContext(ctx, "SELECT revert FROM session WHERE id = ?", id).Scan(&revert) == nil && json.Valid([]byte(revert.String)) {
			info["revert"] = json.RawMessage(revert.String)
		}
		list, err = messageRows(ctx, db, id, b)
		return err
	})
	if err != nil {
		return Session{}, err
	}
	if err := openCode(info, list, b); err != nil {
		return Session{}, err
	}
	return b.finish()
}

// messageRows reads the messages of a session, and their parts.
func messageRows(ctx context.Context, db *sql.DB, session string, b *builder) ([]exported, error) {
	var list []exported
	at := map[string]int{}
	left, skipped := int64(maxBytes), 0
	read := func(query string, take func(id, of string, f fields)) error {
		rows, err := db.QueryContext(ctx, query, maxPiece, session, maxEntries+1)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		n := 0
		for rows.Next() {
			var id, of string
			var data []byte
			if err := rows.Scan(&id, &of, &data); err != nil {
				return err
			}
			n++
			if left -= int64(len(data)); left < 0 || n > maxEntries {
				return errTooLarge
			}
			if f := object(data); f != nil {
				take(id, of, f)
			} else {
				skipped++
			}
		}
		return rows.Err()
	}
	const data = "CASE WHEN length(data) <= ? THEN data END"
	err := read("SELECT id, '', "+data+" FROM message WHERE session_id = ? ORDER BY id LIMIT ?", func(id, _ string, f fields) {
		at[id] = len(list)
		list = append(list, exported{id: id, info: f})
	})
	if err == nil {
		err = read("SELECT id, message_id, "+data+" FROM part WHERE session_id = ? ORDER BY id LIMIT ?", func(_, of string, f fields) {
			if i, ok := at[of]; ok {
				list[i].parts = append(list[i].parts, f)
			} else {
				skipped++
			}
		})
	}
	if skipped > 0 {
		b.warn(fmt.Sprintf("%d rows of the session could not be read and were left out", skipped))
	}
	return list, err
}
