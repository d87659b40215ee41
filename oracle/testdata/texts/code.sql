CREATE TABLE customers (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        VARCHAR(200) NOT NULL,
    email       VARCHAR(320) NOT NULL UNIQUE,
    created_at  TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE invoices (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id  BIGINT NOT NULL REFERENCES customers (id) ON DELETE RESTRICT,
    issued_on    DATE NOT NULL,
    due_on       DATE NOT NULL,
    paid_on      DATE,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    CONSTRAINT due_after_issue CHECK (due_on >= issued_on)
);

CREATE INDEX invoices_open ON invoices (customer_id, due_on) WHERE paid_on IS NULL;

-- What each customer owes, and for how long, the worst first.
WITH open_invoices AS (
    SELECT customer_id,
           amount_cents,
           CURRENT_DATE - due_on AS days_late
    FROM invoices
    WHERE paid_on IS NULL
), totals AS (
    SELECT customer_id,
           COUNT(*)                                             AS open_count,
           SUM(amount_cents)                                    AS owed_cents,
           SUM(amount_cents) FILTER (WHERE days_late > 30)      AS late_cents,
           MAX(days_late)                                       AS worst_days
    FROM open_invoices
    GROUP BY customer_id
)
SELECT c.id,
       c.name,
       t.open_count,
       ROUND(t.owed_cents / 100.0, 2)                AS owed,
       ROUND(COALESCE(t.late_cents, 0) / 100.0, 2)   AS late,
       GREATEST(t.worst_days, 0)                     AS days_late,
       RANK() OVER (ORDER BY t.late_cents DESC NULLS LAST) AS position
FROM customers AS c
JOIN totals AS t ON t.customer_id = c.id
WHERE t.owed_cents > 5000
ORDER BY position, c.name
LIMIT 50;

UPDATE invoices
SET paid_on = CURRENT_DATE
WHERE id IN (SELECT invoice_id FROM payments WHERE settled AND booked_on = CURRENT_DATE)
  AND paid_on IS NULL;
