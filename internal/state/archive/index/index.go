// Package index finds text in the sessions. Its index is derived from the logs and
// brought up to date on request, in bounded pieces, by one process at once while others
// search; one that is missing, of another version or damaged is made again. It writes
// nothing but its own folder. SQLite's driver has a goroutine for each query that can
// be cancelled, which ends with it; there are no others.
//
// Words are cut and folded here, for documents and queries alike, and the full-text
// table cuts at the blanks between them: one column has words, the other pairs of
// neighbouring characters for Hangul, kana and han, so that parts of words are found.
package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"

	"dure/internal/base/record"
)

// Version is the version of the schema, and of how words are cut and folded.
const Version = 1

// The files of an index, in its folder.
const (
	fileName   = "search.db"
	lockName   = "lock"        // shared by who has the index open; held to remove it
	updateName = "update.lock" // held by who writes
)

// Errors that callers branch on. They arrive wrapped.
var (
	ErrDamaged = errors.New("the index is damaged") // remove it and make it again
	ErrBusy    = errors.New("another process is using the index")
)

// Options say where an index is. Only Dir matters to most.
type Options struct {
	Dir  string           // "" = in memory
	Wait time.Duration    // for locks of others; 0 = 5 s
	Now  func() time.Time // nil = time.Now

	Batch int // documents that one transaction takes at most, about; 0 = 2,000

	// Mask hides the secrets in the input of a call, which a log has as it was; nil =
	// there are none. What cannot be masked is not found.
	Mask func(input json.RawMessage) (json.RawMessage, error)

	// Fault is for crash tests: it is called before and after each change of the
	// disk, and may end the process.
	Fault func(boundary string)
}

// Index is an open index. It is used by one goroutine at a time.
type Index struct {
	o    Options
	use  *flock.Flock // nil in memory
	db   *sql.DB
	conn *sql.Conn
}

// Open opens the index, which is made if there is none that can be used.
func Open(ctx context.Context, o Options) (*Index, error) {
	if o.Wait == 0 {
		o.Wait = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Batch == 0 {
		o.Batch = 2_000
	}
	if o.Fault == nil {
		o.Fault = func(string) {}
	}
	x := &Index{o: o}
	err := x.open(ctx)
	if errors.Is(err, ErrDamaged) {
		if err = x.remove(ctx); err == nil {
			err = x.open(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the search index: %w", err)
	}
	return x, nil
}

// Reset throws everything away and begins again.
func (x *Index) Reset(ctx context.Context) error {
	err := x.Close()
	if err == nil || errors.Is(err, ErrDamaged) {
		err = x.remove(ctx)
	}
	if err == nil {
		err = x.open(ctx)
	}
	if err != nil {
		return fmt.Errorf("making the search index again: %w", err)
	}
	return nil
}

// Close closes the index. It can be closed twice.
func (x *Index) Close() error {
	var errs []error
	if x.conn != nil {
		errs = append(errs, x.conn.Close())
	}
	if x.db != nil {
		errs = append(errs, x.db.Close())
	}
	if x.use != nil {
		errs = append(errs, x.use.Close())
	}
	x.conn, x.db, x.use = nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the search index: %w", damage(err))
	}
	return nil
}

func (x *Index) open(ctx context.Context) (err error) {
	name := ":memory:"
	if x.o.Dir != "" {
		if err := os.MkdirAll(x.o.Dir, 0o700); err != nil {
			return err
		}
		if x.use, err = x.lock(ctx, lockName, (*flock.Flock).TryRLockContext); err != nil {
			return err
		}
		path := filepath.Join(x.o.Dir, fileName)
		if err := private(path); err != nil {
			return errors.Join(err, x.Close())
		}
		name = dsn(path)
	}
	if x.db, err = sql.Open("sqlite", name); err == nil {
		x.db.SetMaxOpenConns(1)
		x.conn, err = x.db.Conn(ctx)
	}
	if err == nil {
		err = x.prepare(ctx)
	}
	if err != nil {
		return errors.Join(damage(err), x.Close())
	}
	return nil
}

// private makes the file, which nobody else may read; SQLite gives the files beside
// it the same mode.
func private(path string) error {
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		if info, err := os.Lstat(path + suffix); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s: %w: %w", path+suffix, record.ErrIrregular, ErrDamaged)
		}
	}
	f, err := record.Open(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close()) // it may have come from elsewhere
}

// dsn writes a path as SQLite wants it.
func dsn(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // of a drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// lock takes a lock in the folder, or is ErrBusy after a while.
func (x *Index) lock(ctx context.Context, name string, try func(*flock.Flock, context.Context, time.Duration) (bool, error)) (*flock.Flock, error) {
	const again = 10 * time.Millisecond
	waiting, cancel := context.WithTimeout(ctx, x.o.Wait)
	defer cancel()
	l := flock.New(filepath.Join(x.o.Dir, name), flock.SetFlag(record.LockFlags), flock.SetPermissions(0o600))
	ok, err := try(l, waiting, again)
	if ok {
		return l, nil
	}
	_ = l.Close() // it is not held
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		err = ErrBusy
	}
	return nil, err
}

// remove takes the files away while nobody has them open: a process that has them
// open would write into files of the same names.
func (x *Index) remove(ctx context.Context) error {
	if x.o.Dir == "" {
		return nil
	}
	alone, err := x.lock(ctx, lockName, (*flock.Flock).TryLockContext)
	if err != nil {
		return err
	}
	x.o.Fault("remove")
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		if rerr := os.Remove(filepath.Join(x.o.Dir, fileName+suffix)); !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		x.o.Fault("removed" + suffix)
	}
	return errors.Join(err, alone.Close())
}

// pragmas are set whenever the index is opened. The cache is in KiB; busy_timeout is
// in milliseconds, and is for the moments in which SQLite itself takes locks.
var pragmas = []string{
	"busy_timeout = 5000", "journal_mode = WAL", "synchronous = NORMAL", "cache_size = -32768",
	"trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY",
}

// schema is the whole of it. docs.text is as pack makes it; words holds no text, and
// what it finds is the document of the same number. days has the lowest number of the
// documents of a day, so that what is older is not looked at.
var schema = []string{
	`CREATE TABLE sessions (
		num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, workdir TEXT NOT NULL, tags TEXT NOT NULL,
		created TEXT NOT NULL, updated TEXT NOT NULL,
		head INTEGER NOT NULL, seq INTEGER NOT NULL, last TEXT NOT NULL, dead TEXT NOT NULL, stale INTEGER NOT NULL)`,
	`CREATE TABLE docs (
		id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, piece INTEGER NOT NULL,
		kind INTEGER NOT NULL, time INTEGER NOT NULL, tool TEXT NOT NULL, text BLOB NOT NULL)`,
	`CREATE INDEX docs_session ON docs (session)`,
	`CREATE TABLE days (day INTEGER PRIMARY KEY, first INTEGER NOT NULL)`,
	`CREATE VIRTUAL TABLE words USING fts5 (plain, pairs, meta, content = '', contentless_delete = 1, tokenize = 'ascii')`,
}

// prepare makes sure that there is an index of this version.
func (x *Index) prepare(ctx context.Context) error {
	for _, p := range pragmas {
		if err := x.exec(ctx, "PRAGMA "+p); err != nil {
			return err
		}
	}
	version, tables := 0, 0
	if err := x.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == Version {
		return nil
	}
	if err := x.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if version != 0 || tables != 0 {
		return fmt.Errorf("it is of version %d, not %d: %w", version, Version, ErrDamaged)
	}
	return x.within(ctx, "create", func(ctx context.Context) error {
		if err := x.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil || version == Version {
			return err // another process was faster
		}
		for _, s := range schema {
			if err := x.exec(ctx, s); err != nil {
				return err
			}
			x.o.Fault("create.table")
		}
		return x.exec(ctx, fmt.Sprintf("PRAGMA user_version = %d", Version))
	})
}

func (x *Index) exec(ctx context.Context, query string, args ...any) error {
	_, err := x.conn.ExecContext(ctx, query, args...)
	return err
}

// within runs f in a transaction, which is not interrupted: whoever wants to stop asks
// between them.
func (x *Index) within(ctx context.Context, boundary string, f func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	x.o.Fault(boundary + ".begin")
	if err := x.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f(ctx)
	if err == nil {
		x.o.Fault(boundary + ".commit")
		err = x.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = x.exec(ctx, "ROLLBACK") // there may be nothing to roll back
		return err
	}
	x.o.Fault(boundary + ".committed")
	return nil
}

// Result codes of SQLite, of which the lowest byte says what kind of error it is.
const (
	codeCorrupt = 11
	codeNotADB  = 26
	codeFull    = 13
)

// damage makes ErrDamaged of what says that the files are no index.
func damage(err error) error {
	switch codeOf(err) {
	case codeCorrupt, codeNotADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// IsFull reports whether an error says that the disk is full.
func IsFull(err error) bool { return codeOf(err) == codeFull }

func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}
