-- Files the partitions that exist already, 20,000 a transaction.
SELECT @log@.retention_floors_backfill_v1(20000)
