-- Each kind of event: how many there were, how many stayed, and why.
SELECT format('   %-28s %3s -> %-3s %s', k.kind, k.events,
    (SELECT count(*) FROM :"event".event AS e WHERE e.name = k.kind), k.verdict)
FROM :"demo".kinds AS k ORDER BY k.number;
