WITH block_sums AS (
    SELECT snapshot_id, CAST(sum(blocks.blocks) AS BIGINT) AS n, CAST(sum(requested_bytes) AS BIGINT) AS requested,
        CAST(sum(slop_bytes) AS BIGINT) AS slop
    FROM blocks GROUP BY snapshot_id
)
SELECT concat(snapshot_id, ' blocks') AS name, n AS bytes FROM block_sums
UNION ALL SELECT concat(snapshot_id, ' requested') AS name, requested AS bytes FROM block_sums
UNION ALL SELECT concat(snapshot_id, ' slop') AS name, slop AS bytes FROM block_sums
UNION ALL
SELECT concat(snapshot_id, ' scope ', coalesce(scope, 'noScope')) AS name,
    CAST(sum(requested_bytes + slop_bytes) AS BIGINT) AS bytes
FROM blocks GROUP BY snapshot_id, coalesce(scope, 'noScope')
UNION ALL
SELECT concat(snapshot_id, ' type ', coalesce(type, 'other')) AS name,
    CAST(sum(requested_bytes + slop_bytes) AS BIGINT) AS bytes
FROM blocks GROUP BY snapshot_id, coalesce(type, 'other')
UNION ALL
SELECT concat(snapshot_id, ' state ', state) AS name,
    CAST(sum(requested_bytes + slop_bytes) AS BIGINT) AS bytes
FROM blocks GROUP BY snapshot_id, state
UNION ALL SELECT concat(snapshot_id, ' explicit') AS name, explicit_bytes AS bytes
FROM snapshots WHERE source = 'report'
UNION ALL SELECT concat(snapshot_id, ' heap-unclassified') AS name, heap_unclassified_bytes AS bytes
FROM snapshots WHERE source = 'report'
UNION ALL SELECT concat(snapshot_id, ' heap-allocated') AS name, amount AS bytes
FROM reports WHERE path = 'heap-allocated'
UNION ALL SELECT concat(snapshot_id, ' heap-committed') AS name, heap_committed_bytes AS bytes
FROM snapshots WHERE source = 'report'
UNION ALL SELECT concat(snapshot_id, ' resident') AS name, resident_bytes AS bytes
FROM snapshots WHERE source = 'report'
UNION ALL SELECT concat(snapshot_id, ' vsize') AS name, virtual_bytes AS bytes
FROM snapshots WHERE source = 'report'
ORDER BY name
