/**
 * The fifth version of the fleet's schema: where users are online, for limits of addresses and connections over all nodes; and
 * the links of the nodes' listeners, which only who sees the listener reads.
 */
export const SLOTS = `
-- Addresses of users with sessions. What a crash loses, nodes tell again: not logged. A row counts while its node of that epoch
-- was seen in the last 30 seconds.
CREATE UNLOGGED TABLE weir.slot (
  user_id uuid NOT NULL,
  ip text NOT NULL,
  node_id uuid NOT NULL,
  epoch bigint NOT NULL,
  connections integer NOT NULL,
  since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, ip, node_id)
) WITH (fillfactor = 70);
CREATE INDEX slot_node ON weir.slot (node_id);
ALTER TABLE weir.slot ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON weir.slot FOR SELECT USING (EXISTS (SELECT FROM weir.app_user u WHERE u.id = user_id));

-- By listener and flow, with a place for the credential. They may name what clients of the listener alone are to know.
CREATE TABLE weir.link (
  node_id uuid NOT NULL REFERENCES weir.node (id) ON DELETE CASCADE,
  listener text NOT NULL,
  links jsonb NOT NULL,
  PRIMARY KEY (node_id, listener)
);
ALTER TABLE weir.link ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON weir.link FOR SELECT USING (weir.sees(listener));
GRANT SELECT ON weir.slot, weir.link TO weir_admin, weir_node;
ALTER TABLE weir.node DROP COLUMN links;

-- As in version 2, with the links in their table; null: they are as they were.
CREATE OR REPLACE FUNCTION weir.beat(
  node_id uuid, node_instance uuid, node_applied jsonb, node_links jsonb, node_stats jsonb, OUT is_draining boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  UPDATE weir.node SET seen_at = clock_timestamp(), applied = node_applied, stats = node_stats,
    connections = (node_stats->>'connections')::integer
  WHERE id = node_id AND instance = node_instance AND login = session_user
  RETURNING draining INTO is_draining;
  IF is_draining IS NOT NULL AND node_links IS NOT NULL THEN
    DELETE FROM weir.link l WHERE l.node_id = beat.node_id;
    INSERT INTO weir.link SELECT beat.node_id, e.key, e.value FROM jsonb_each(node_links) e WHERE weir.sees(e.key);
  END IF;
END $$;

-- What is online on this node: rows that have changed, 0 connections for one that is gone, or all of them (\`is_whole\`). A row
-- without an address only asks. Answers for users with a limit: which of this node's addresses are beyond it, how many
-- connections this node may have (null: any number), and what the others have. Who came first stays.
CREATE FUNCTION weir.hold_slots(
  node uuid, node_instance uuid, is_whole boolean, users uuid[], addresses text[], counts integer[], ages bigint[])
RETURNS TABLE (user_id uuid, refused text[], most integer, ips text[], connections integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
#variable_conflict use_column
DECLARE
  ask record;
  of_epoch bigint;
  now_at timestamptz;
  sees_all boolean := weir.sees('*');
  own text[];
BEGIN
  SELECT n.epoch INTO of_epoch FROM weir.node n WHERE n.id = node AND n.instance = node_instance AND n.login = session_user;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT array_agg(listener) INTO own FROM weir.access WHERE login = session_user;
  IF is_whole THEN
    DELETE FROM weir.slot s WHERE s.node_id = node OR NOT EXISTS (
      SELECT FROM weir.node n WHERE n.id = s.node_id AND n.epoch = s.epoch AND n.seen_at > clock_timestamp() - interval '1 h');
  END IF;
  -- In one order, as leases are taken.
  PERFORM FROM weir.app_user u WHERE u.id = ANY (users) AND (u.limits ? 'ip_limit' OR u.limits ? 'connection_limit')
    ORDER BY u.id FOR NO KEY UPDATE;
  now_at := clock_timestamp(); -- behind the locks: who waited came later
  DELETE FROM weir.slot s USING unnest(users, addresses, counts) AS e (id, ip, number)
    WHERE s.user_id = e.id AND s.ip = e.ip AND s.node_id = node AND e.number <= 0;
  INSERT INTO weir.slot AS s
    SELECT e.id, e.ip, node, of_epoch, e.number, now_at + make_interval(secs => e.place / 1000000.0),
      now_at - make_interval(secs => greatest(e.age, 0) / 1000.0)
    FROM unnest(users, addresses, counts, ages) WITH ORDINALITY AS e (id, ip, number, age, place)
    JOIN weir.app_user u ON u.id = e.id AND (sees_all OR u.listener = ANY (own))
    WHERE e.ip IS NOT NULL AND e.number > 0
  ON CONFLICT (user_id, ip, node_id) DO UPDATE SET
    epoch = excluded.epoch, connections = excluded.connections, seen_at = excluded.seen_at,
    since = CASE WHEN s.epoch = excluded.epoch THEN s.since ELSE excluded.since END;
  FOR ask IN
    SELECT u.id, coalesce((u.limits->>'ip_limit')::bigint, 0) AS ip_limit,
      coalesce((u.limits->>'connection_limit')::bigint, 0) AS connection_limit
    FROM weir.app_user u
    WHERE u.id = ANY (users) AND (sees_all OR u.listener = ANY (own)) AND (u.limits ? 'ip_limit' OR u.limits ? 'connection_limit')
  LOOP
    user_id := ask.id;
    refused := '{}';
    most := NULL;
    IF ask.ip_limit > 0 THEN
      SELECT coalesce(array_agg(x.ip), '{}') INTO refused FROM (
        SELECT s.ip, bool_or(s.node_id = node) AS is_own FROM weir.live_slots(ask.id) s
        GROUP BY s.ip ORDER BY min(s.since), s.ip OFFSET ask.ip_limit) x
      WHERE x.is_own;
      DELETE FROM weir.slot s WHERE s.user_id = ask.id AND s.node_id = node AND s.ip = ANY (refused);
    END IF;
    SELECT coalesce(array_agg(s.ip), '{}'), coalesce(sum(s.connections), 0) INTO ips, connections
    FROM weir.live_slots(ask.id) s WHERE s.node_id <> node;
    IF ask.connection_limit > 0 THEN
      most := greatest(0, ask.connection_limit - connections);
      UPDATE weir.slot s SET connections = greatest(0, least(s.connections, most - x.before))
      FROM (SELECT o.ip, coalesce(sum(o.connections) OVER (
              ORDER BY o.since, o.ip ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
            FROM weir.slot o WHERE o.user_id = ask.id AND o.node_id = node) x
      WHERE s.user_id = ask.id AND s.node_id = node AND s.ip = x.ip AND s.connections > greatest(0, most - x.before);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

CREATE FUNCTION weir.live_slots(who uuid) RETURNS SETOF weir.slot
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  SELECT s.* FROM weir.slot s
  JOIN weir.node n ON n.id = s.node_id AND n.epoch = s.epoch AND n.seen_at > clock_timestamp() - interval '30 s'
  WHERE s.user_id = who
$$;

-- Connections of users by node, of the users that this login sees; without those of \`node\`.
CREATE FUNCTION weir.online(node uuid) RETURNS TABLE (user_id uuid, node_name text, connections integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  WITH own AS (SELECT weir.sees('*') AS sees_all, array_agg(listener) AS tags FROM weir.access WHERE login = session_user)
  SELECT s.user_id, n.name, sum(s.connections)::integer
  FROM weir.node n
  JOIN weir.slot s ON s.node_id = n.id AND s.epoch = n.epoch
  JOIN weir.app_user u ON u.id = s.user_id
  CROSS JOIN own o
  WHERE n.id <> node AND n.seen_at > clock_timestamp() - interval '30 s' AND (o.sees_all OR u.listener = ANY (o.tags))
  GROUP BY 1, 2
$$;

-- What users have moved on each node since their counters were set back, as far as it is folded; null: all users.
CREATE FUNCTION weir.moved(who uuid) RETURNS TABLE (user_id uuid, node_name text, upload bigint, download bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  WITH own AS (SELECT weir.sees('*') AS sees_all, array_agg(listener) AS tags FROM weir.access WHERE login = session_user)
  SELECT h.user_id, coalesce(n.name, h.node_id::text), sum(h.upload)::bigint, sum(h.download)::bigint
  FROM weir.usage_hour h
  JOIN weir.app_user u ON u.id = h.user_id AND u.generation = h.generation
  LEFT JOIN weir.node n ON n.id = h.node_id
  CROSS JOIN own o
  WHERE (who IS NULL OR h.user_id = who) AND (o.sees_all OR u.listener = ANY (o.tags))
  GROUP BY 1, 2
$$;

-- As in version 3. Waiting for an advisory lock brings no news of tables: what another session has made meanwhile is not known
-- to \`to_regclass\`, only to the statement itself.
CREATE OR REPLACE FUNCTION weir.make_partition(hour timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
DECLARE part text := 'ledger_' || to_char(date_trunc('hour', hour), 'YYYYMMDDHH24');
BEGIN
  IF to_regclass('weir.' || part) IS NOT NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('weir partitions', 0));
  EXECUTE format('CREATE TABLE IF NOT EXISTS weir.%I PARTITION OF weir.ledger FOR VALUES FROM (%L) TO (%L)',
    part, date_trunc('hour', hour), date_trunc('hour', hour) + interval '1 hour');
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weir.hold_slots, weir.online, weir.moved TO weir_admin, weir_node;
`;
