SELECT snapshot_id AS id FROM snapshots WHERE source = 'report' ORDER BY snapshot_id
