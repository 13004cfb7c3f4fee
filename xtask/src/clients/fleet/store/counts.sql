SELECT service_name AS service, 'collections' AS name, CAST(count(*) AS BIGINT) AS n,
    CAST(count(DISTINCT amount) AS BIGINT) AS different, CAST(max(amount) AS BIGINT) AS most
FROM reports WHERE path = 'shipped/collections' GROUP BY service_name
UNION ALL
SELECT service_name AS service, 'snapshots' AS name, CAST(count(*) AS BIGINT) AS n,
    CAST(count(DISTINCT snapshot_id) AS BIGINT) AS different, 0 AS most
FROM snapshots GROUP BY service_name
ORDER BY name, service
