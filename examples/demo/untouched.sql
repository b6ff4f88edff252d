-- What no cycle touches.
SELECT format('   untouched: %s dead letters, %s streams states, %s queues',
    (SELECT count(*) FROM :"log".log_dlq), (SELECT count(*) FROM :"streams".state),
    (SELECT count(*) FROM :"log".queues));
