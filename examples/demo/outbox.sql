-- An outbox with a history: each kind of event with its age, its policy and its deliveries' statuses.
CREATE TABLE :"demo".kinds (
    number integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    kind text, events integer, age interval, policy text, own_window interval, statuses text[],
    verdict text
);
INSERT INTO :"demo".kinds (kind, events, age, policy, own_window, statuses, verdict) VALUES
    ('newsletter, delivered', 40, '1 hour', 'succeeded', NULL, '{succeeded,cancelled}',
        'succeeded: goes at once'),
    ('newsletter, a dead letter', 3, '1 hour', 'succeeded', NULL, '{succeeded,dead}',
        'its dead letter keeps it 90 days'),
    ('newsletter, old dead letter', 2, '100 days', 'succeeded', NULL, '{succeeded,dead}',
        'kept 90 days, then gone'),
    ('mailing to 12,000', 1, '1 hour', 'succeeded', NULL, array_fill('succeeded'::text, '{12000}'),
        'succeeded: goes a chunk at a time'),
    ('alert, settled', 20, '1 hour', 'settled', NULL, '{succeeded,dead}',
        'settled: dead letters go too'),
    ('alert, one delivery owed', 4, '1 hour', 'settled', NULL, '{succeeded,failed}',
        'owed: never deleted'),
    ('password reset, 8 d old', 15, '8 days', '', '7 days', '{succeeded}',
        'its own window, 7 days, is over'),
    ('password reset, 3 d old', 6, '3 days', '', '7 days', '{succeeded}',
        'its own window is not over'),
    ('order, 100 d old', 30, '100 days', '', NULL, '{succeeded,orphaned}',
        'the default window, 90 days, is over'),
    ('order, 100 d old, owed', 2, '100 days', '', NULL, '{succeeded,pending}',
        'owed: never deleted'),
    ('contract, 100 d old', 5, '100 days', '', '365 days', '{succeeded}',
        'its own window, a year, is longer');

INSERT INTO :"event".event (name, recorded_at, delete_when, retention_seconds)
SELECT k.kind, now() - k.age, k.policy, extract(epoch FROM k.own_window)::integer
FROM :"demo".kinds AS k CROSS JOIN generate_series(1, k.events);

INSERT INTO :"event".delivery (event_id, receiver_key, target, status, completed_at, succeeded_at)
SELECT e.id, (ARRAY['mailer', 'ledger', 'partner'])[LEAST(d.number, 3)], d.number::text, d.status,
    CASE WHEN d.status NOT IN ('pending', 'failed') THEN e.recorded_at END,
    CASE WHEN d.status = 'succeeded' THEN e.recorded_at END
FROM :"demo".kinds AS k JOIN :"event".event AS e ON e.name = k.kind
    CROSS JOIN unnest(k.statuses) WITH ORDINALITY AS d (status, number);
