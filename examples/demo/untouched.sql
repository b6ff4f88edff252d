-- What no cycle touches.
SELECT format('   untouched, as always: %s dead letters, %s row of streams state, %s queues',
    (SELECT count(*) FROM :"log".log_dlq), (SELECT count(*) FROM :"streams".state),
    (SELECT count(*) FROM :"log".queues));
