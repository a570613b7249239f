-- The flights queries as published: heavyai/heavydb, Benchmarks/queries/flights/ (Apache-2.0); T is the table.
-- Q9 and Q10 are disabled there.  queries.py respells them for DuckDB: date_trunc('month', x), TIMESTAMP 'x', and in Q10
-- INTEGER casts, since SMALLINT * SMALLINT overflows.

-- Q1
select count(*) from T;
-- Q2
select carrier_name, count(*) from T group by carrier_name;
-- Q3
select carrier_name, avg(arrdelay) from T group by carrier_name;
-- Q4
select origin_name, dest_name, avg(arrdelay) from T group by origin_name, dest_name;
-- Q5
select date_trunc(month, dep_timestamp) as ym, avg(arrdelay) as del from T group by ym;
-- Q6
select dest_name, extract(month from dep_timestamp) as m, extract(year from dep_timestamp) as y, avg(arrdelay) as del from T group by dest_name, y, m;
-- Q7
select count(*) from T where origin_name = 'Lambert-St Louis International';
-- Q8
select count(*) from T where origin_name = 'Lambert-St Louis International' and dest_name = 'Lincoln Municipal';
-- Q9
select uniquecarrier, flightnum, dep_timestamp, dest_lat from T where origin_name = 'Lambert-St Louis International' and flightnum = 586;
-- Q10
select origin_name, dest_name, avg(arrdelay), avg(depdelay), avg(arrdelay * depdelay) from T group by origin_name, dest_name;
-- Q11
select uniquecarrier, flightnum, dep_timestamp, dest_lat from T where origin_name = 'Lambert-St Louis International' and flightnum = 586 limit 5000;
-- Q12
select carrier_name as key0, avg(depdelay) as x, avg(arrdelay) as y, count(*) as size from T where dep_timestamp >= TIMESTAMP(0) '1996-07-26 16:30:06' and dep_timestamp < TIMESTAMP(0) '1997-05-16 16:30:06' group by key0 order by size desc limit 50;
-- Q13
select count(*) as val from T where dep_timestamp >= TIMESTAMP(0) '1996-07-28 00:00:00' and dep_timestamp < TIMESTAMP(0) '1997-05-18 00:00:00';
-- Q14
select extract(month from arr_timestamp) as key0, extract(isodow from arr_timestamp) as key1, count(*) as color from T where dep_timestamp >= TIMESTAMP(0) '1996-07-28 00:00:00' and dep_timestamp < TIMESTAMP(0) '1997-05-18 00:00:00' group by key0, key1 order by key0, key1;
-- Q15
select dest_state as key0, avg(arrdelay) as val from T where dep_timestamp >= TIMESTAMP(0) '1996-07-28 00:00:00' and dep_timestamp < TIMESTAMP(0) '1997-05-18 00:00:00' group by key0 order by key0;
-- Q16
select carrier_name as key0, avg(depdelay) as x, avg(arrdelay) as y, count(*) as size from T where dep_timestamp >= TIMESTAMP(0) '1996-07-28 00:00:00' and dep_timestamp < TIMESTAMP(0) '1997-05-18 00:00:00' group by key0 order by size desc limit 50;
-- Q17
select origin_name, dest_name, avg(arrdelay), avg(depdelay), avg(arrdelay + depdelay) from T group by origin_name, dest_name;
