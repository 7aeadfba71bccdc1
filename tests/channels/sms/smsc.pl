#!/usr/bin/perl
# An SMS centre made with Net::SMPP, which does what tests/node/smsc.mjs does: it serves one connection after another.
use strict;
use warnings;
use JSON::PP;
use Net::SMPP;

$| = 1;
my $json = JSON::PP->new->latin1->canonical;
my $server = Net::SMPP->new_listen('127.0.0.1', port => 0) or die "no port: $!";
print $server->sockport, "\n";
my $taken = 0xa0;

while (1) {
    my $session = $server->accept or next;
    while (defined(my $pdu = do { local $SIG{__WARN__} = sub { }; $session->read_pdu })) {
        my $cmd = $pdu->{cmd};
        if ($cmd == Net::SMPP::CMD_bind_transceiver) {
            my $known = $pdu->{system_id} eq 'recado' && $pdu->{password} eq 'pass-9f2';
            $session->bind_transceiver_resp(system_id => 'smsc', seq => $pdu->{seq}, status => $known ? 0 : 0x0e);
        }
        elsif ($cmd == Net::SMPP::CMD_enquire_link) { $session->enquire_link_resp(seq => $pdu->{seq}) }
        elsif ($cmd == Net::SMPP::CMD_unbind) { $session->unbind_resp(seq => $pdu->{seq}); last }
        elsif ($cmd == Net::SMPP::CMD_unbind_resp) { last }
        elsif ($cmd == Net::SMPP::CMD_submit_sm) { submitted($session, $pdu) }
    }
    close $session;
}

sub submitted {
    my ($session, $pdu) = @_;
    my $octets = $pdu->{short_message};
    my $header = $pdu->{esm_class} & 0x40 ? substr($octets, 0, 1 + ord $octets, '') : '';
    print $json->encode({
        from => $pdu->{source_addr},
        to => $pdu->{destination_addr},
        coding => $pdu->{data_coding},
        header => unpack('H*', $header),
        octets => unpack('H*', $octets),
        receipt => $pdu->{registered_delivery},
    }), "\n";
    if ($pdu->{destination_addr} =~ /90(\d\d)$/) {
        $session->submit_sm_resp(message_id => '', seq => $pdu->{seq}, status => $1);
        return;
    }
    my $id = $taken++;
    $session->submit_sm_resp(message_id => sprintf('%X', $id), seq => $pdu->{seq});
    my %back = (source_addr => $pdu->{destination_addr}, destination_addr => $pdu->{source_addr}, async => 1);
    if ($pdu->{registered_delivery}) {
        my $said = sprintf('id:%010d sub:001 dlvrd:001 stat:DELIVRD err:000 text:', $id);
        $session->deliver_sm(%back, esm_class => 4, short_message => $said);
    }
    $session->deliver_sm(%back, data_coding => 8, short_message => pack('H*', '004f006c00e10020d83dde00'))
        if $octets eq 'ping';
    $session->unbind(async => 1) if $octets eq 'bye';
}
