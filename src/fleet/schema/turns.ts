/**
 * The seventh version of the fleet's schema: nodes take turns at a user without locking the user, so that a transaction that stays
 * open holds up no change of the user, and no other node for longer than half a second.
 */
import { counted } from "./ceilings.ts";

const MOST_CONNECTIONS = "2147483647";
/** Addresses of one user that one node may tell. */
const MOST_ADDRESSES = "1000";
const QUOTA = "u.limits->'quota'";

export const TURNS = `
CREATE TABLE weir.turn (user_id uuid PRIMARY KEY);

-- Rows of these wait for their user no more, and hold up no deletion: \`commit_change\` takes out what it can, \`tidy\` the rest.
ALTER TABLE weir.lease DROP CONSTRAINT lease_user_id_fkey;
ALTER TABLE weir.usage_hour DROP CONSTRAINT usage_hour_user_id_fkey;
ALTER TABLE weir.usage_total DROP CONSTRAINT usage_total_user_id_fkey;

-- In one order, so that two nodes wait for each other once, and not for ever. Whose turn does not come is not waited for: limits
-- are then as exact as the node that holds them up lets them be.
CREATE FUNCTION weir.take_turns(users uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET lock_timeout = '500ms' AS $$
BEGIN
  INSERT INTO weir.turn SELECT DISTINCT id FROM unnest(users) AS id ORDER BY id ON CONFLICT DO NOTHING;
  PERFORM FROM weir.turn t WHERE t.user_id = ANY (users) ORDER BY t.user_id FOR UPDATE;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN NULL;
END $$;

-- As in version 4. A quota that no weir has written is none.
CREATE OR REPLACE FUNCTION weir.take_leases(node uuid, node_instance uuid, users uuid[], generations integer[], wanted bigint[])
RETURNS TABLE (user_id uuid, generation integer, granted bigint, upload bigint, download bigint, ends timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
#variable_conflict use_column
DECLARE
  ask record;
  used record;
  left_over bigint;
  of_epoch bigint;
BEGIN
  SELECT n.epoch INTO of_epoch FROM weir.node n WHERE n.id = node AND n.instance = node_instance AND n.login = session_user;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM weir.take_turns(ARRAY(SELECT u.id FROM weir.app_user u WHERE u.id = ANY (users) AND weir.sees(u.listener)));
  FOR ask IN
    SELECT w.id, w.gen, w.want,
      CASE WHEN ${QUOTA}->>'reset' IN ('never', 'day', 'week', 'month', 'window') THEN ${QUOTA}->>'reset' END AS reset,
      ${counted(`${QUOTA}->'total_bytes'`)} AS total,
      ${counted(`${QUOTA}->'window_seconds'`, "1000000000")} AS window_seconds
    FROM unnest(users, generations, wanted) AS w (id, gen, want)
    JOIN weir.app_user u ON u.id = w.id AND u.generation = w.gen AND weir.sees(u.listener)
  LOOP
    user_id := ask.id;
    generation := ask.gen;
    granted := NULL;
    IF ask.reset IS NULL OR ask.want = 0 THEN
      DELETE FROM weir.lease l WHERE l.user_id = ask.id AND l.node_id = node AND l.epoch = of_epoch;
      IF ask.reset IS NULL THEN RETURN NEXT; CONTINUE; END IF;
    END IF;
    SELECT * INTO used FROM weir.quota_used(ask.id, ask.gen, ask.reset, ask.window_seconds);
    upload := used.upload;
    download := used.download;
    ends := used.ends;
    SELECT ask.total - upload - download - coalesce(sum(l.bytes), 0) INTO left_over
    FROM weir.lease l WHERE l.user_id = ask.id AND l.generation = ask.gen AND NOT (l.node_id = node AND l.epoch = of_epoch);
    IF ask.want < 0 THEN
      granted := greatest(0, left_over);
    ELSE
      granted := CASE WHEN ask.want = 0 THEN 0 ELSE
        greatest(0, least(left_over, greatest(1048576, least(left_over / 20, ask.want, 268435456)))) END;
      IF granted > 0 THEN
        INSERT INTO weir.lease AS l VALUES (ask.id, node, of_epoch, ask.gen, granted, clock_timestamp() + interval '10 min')
        ON CONFLICT (user_id, node_id, epoch) DO UPDATE SET
          generation = excluded.generation, bytes = excluded.bytes, expires_at = excluded.expires_at;
      ELSE
        DELETE FROM weir.lease l WHERE l.user_id = ask.id AND l.node_id = node AND l.epoch = of_epoch;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- As in version 5. What is no address is left out, and of more than ${MOST_ADDRESSES} of one user those that came last.
CREATE OR REPLACE FUNCTION weir.hold_slots(
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
    DELETE FROM weir.slot s WHERE s.node_id = node;
    DELETE FROM weir.slot s USING (
      SELECT o.user_id, o.ip, o.node_id FROM weir.slot o WHERE NOT EXISTS (
        SELECT FROM weir.node n WHERE n.id = o.node_id AND n.epoch = o.epoch AND n.seen_at > clock_timestamp() - interval '1 h')
      FOR UPDATE SKIP LOCKED) gone
    WHERE s.user_id = gone.user_id AND s.ip = gone.ip AND s.node_id = gone.node_id;
  END IF;
  PERFORM weir.take_turns(ARRAY(SELECT u.id FROM weir.app_user u WHERE u.id = ANY (users)
    AND (sees_all OR u.listener = ANY (own)) AND (u.limits ? 'ip_limit' OR u.limits ? 'connection_limit')));
  now_at := clock_timestamp(); -- behind the locks: who waited came later
  DELETE FROM weir.slot s USING unnest(users, addresses, counts) AS e (id, ip, number)
    WHERE s.user_id = e.id AND s.ip = e.ip AND s.node_id = node AND e.number <= 0;
  INSERT INTO weir.slot AS s
    SELECT e.id, e.ip, node, of_epoch, e.number, now_at + make_interval(secs => e.place / 1000000.0),
      now_at - make_interval(secs => least(greatest(e.age, 0), 86400000) / 1000.0)
    FROM unnest(users, addresses, counts, ages) WITH ORDINALITY AS e (id, ip, number, age, place)
    JOIN weir.app_user u ON u.id = e.id AND (sees_all OR u.listener = ANY (own))
    WHERE e.ip ~ '^[0-9a-fA-F:.]{2,45}(%[[:alnum:]_.-]{1,32})?$' AND e.number > 0
  ON CONFLICT (user_id, ip, node_id) DO UPDATE SET
    epoch = excluded.epoch, connections = excluded.connections, seen_at = excluded.seen_at,
    since = CASE WHEN s.epoch = excluded.epoch THEN s.since ELSE excluded.since END;
  DELETE FROM weir.slot s USING (
    SELECT o.user_id, o.ip, row_number() OVER (PARTITION BY o.user_id ORDER BY o.since, o.ip) AS place
    FROM weir.slot o WHERE o.node_id = node AND o.user_id = ANY (users)) x
  WHERE x.place > ${MOST_ADDRESSES} AND s.user_id = x.user_id AND s.ip = x.ip AND s.node_id = node;
  FOR ask IN
    SELECT u.id, ${counted("u.limits->'ip_limit'")} AS ip_limit,
      ${counted("u.limits->'connection_limit'", MOST_CONNECTIONS)} AS connection_limit
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
    SELECT coalesce(array_agg(s.ip), '{}'), least(coalesce(sum(s.connections), 0), ${MOST_CONNECTIONS})
      INTO ips, connections
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

-- As in version 5, up to 2^31-1 connections.
CREATE OR REPLACE FUNCTION weir.online(node uuid) RETURNS TABLE (user_id uuid, node_name text, connections integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  WITH own AS (SELECT weir.sees('*') AS sees_all, array_agg(listener) AS tags FROM weir.access WHERE login = session_user)
  SELECT s.user_id, n.name, least(sum(s.connections), ${MOST_CONNECTIONS})::integer
  FROM weir.node n
  JOIN weir.slot s ON s.node_id = n.id AND s.epoch = n.epoch
  JOIN weir.app_user u ON u.id = s.user_id
  CROSS JOIN own o
  WHERE n.id <> node AND n.seen_at > clock_timestamp() - interval '30 s' AND (o.sees_all OR u.listener = ANY (o.tags))
  GROUP BY 1, 2
$$;
`;
